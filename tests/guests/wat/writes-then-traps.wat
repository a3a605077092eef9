(module
  ;; Writes an output that would be good, and traps.
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "\18\00\00\00\10\00\00\00{\22data\22:\22MQ==\22}\n")
  (func (export "_start")
    (drop (call $write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 8)))
    (unreachable))
)
