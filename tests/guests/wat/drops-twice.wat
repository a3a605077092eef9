(component
  ;; Drops one thing twice.
  (import "wasi:io/poll@0.2.0" (instance $poll
    (export "pollable" (type $pollable (sub resource)))
    (export "[method]pollable.block" (func (param "self" (borrow $pollable))))
    (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))))
  (alias export $poll "pollable" (type $pollable))
  (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
    (alias outer 1 $pollable (type $of_poll))
    (export "pollable" (type $pollable (eq $of_poll)))
    (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
  (core module $libc
    (memory (export "memory") 4)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65536)))
  (core instance $libc (instantiate $libc))
  (alias core export $libc "memory" (core memory $memory))
  (alias core export $libc "realloc" (core func $realloc))
  (core func $subscribe (canon lower (func $clock "subscribe-duration")))
  (core func $drop (canon resource.drop $pollable))
  (core module $main
    (import "host" "memory" (memory 1))
    (import "host" "subscribe" (func $subscribe (param i64) (result i32)))
    (import "host" "drop" (func $drop (param i32)))
    (func (export "run") (result i32)
      (local $one i32)
      (local.set $one (call $subscribe (i64.const 1)))
      (call $drop (local.get $one))
      (call $drop (local.get $one))
      (i32.const 0)))
  (core instance $main (instantiate $main (with "host" (instance
    (export "memory" (memory $memory))
    (export "subscribe" (func $subscribe))
    (export "drop" (func $drop))))))
  (func $run (result (result)) (canon lift (core func $main "run")))
  (instance $out (export "run" (func $run)))
  (export "wasi:cli/run@0.2.0" (instance $out))
)
