(module
  ;; Two memories that grow in turn: each stays under the limit for long, both together do not.
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (memory $one 1)
  (memory $two 1)
  (func (export "_start")
    (loop $for_ever
      (drop (memory.grow $one (i32.const 100)))
      (drop (memory.grow $two (i32.const 100)))
      (br $for_ever)))
)
