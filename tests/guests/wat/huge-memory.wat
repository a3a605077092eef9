(module
  ;; A memory that begins with 4 GiB.
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 65536)
  (func (export "_start")
    (nop))
)
