(module
  ;; Grows a table for ever.
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (table $table 1 funcref)
  (func (export "_start")
    (loop $for_ever
      (drop (table.grow $table (ref.null func) (i32.const 1000)))
      (br $for_ever)))
)
