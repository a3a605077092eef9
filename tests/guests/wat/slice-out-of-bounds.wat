(module
  ;; Writes a slice of 4 GiB that its memory does not hold.
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "\18\00\00\00\ff\ff\ff\ff")
  (func (export "_start")
    (drop (call $write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 8))))
)
