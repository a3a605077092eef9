(module
  ;; Sleeps for ever, for 584 years at a time.
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff"
    (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 32) "\01\00\00\00\00\00\00\00\ff\ff\ff\ff\ff\ff\ff\ff")
  (func (export "_start")
    (loop $for_ever
      (drop (call $poll (i32.const 16) (i32.const 64) (i32.const 1) (i32.const 8)))
      (br $for_ever)))
)
