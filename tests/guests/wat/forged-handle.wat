(component
  ;; Waits for what it was never given.
  (import "wasi:io/poll@0.2.0" (instance $poll
    (export "pollable" (type $pollable (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable))))
    (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))))
  (alias export $poll "pollable" (type $pollable))
  (core module $libc
    (memory (export "memory") 4)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65536)))
  (core instance $libc (instantiate $libc))
  (alias core export $libc "memory" (core memory $memory))
  (alias core export $libc "realloc" (core func $realloc))
  (core func $block (canon lower (func $poll "[method]pollable.block")))
  (core module $main
    (import "host" "memory" (memory 1))
    (import "host" "block" (func $block (param i32)))
    (func (export "run") (result i32)
      (call $block (i32.const 4711))
      (i32.const 0)))
  (core instance $main (instantiate $main (with "host" (instance
    (export "memory" (memory $memory))
    (export "block" (func $block))))))
  (func $run (result (result)) (canon lift (core func $main "run")))
  (instance $out (export "run" (func $run)))
  (export "wasi:cli/run@0.2.0" (instance $out))
)
