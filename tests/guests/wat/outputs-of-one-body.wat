(module
  ;; Answers with ten thousand outputs that all are one body of 900,000 bytes in its memory: 9 GB out of 1 MB.
  (memory (export "memory") 32)
  (global $free (mut i32) (i32.const 65536))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 15)) (i32.const -16)))
    (global.set $free (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func (export "pugmark:handler/step@0.1.0#fold") (param i32) (result i32)
    (i32.const 256))
  (func (export "pugmark:handler/step@0.1.0#decide") (result i32)
    (local $at i32)
    (local.set $at (i32.const 1048576))
    (loop $next
      (i32.store offset=0 (local.get $at) (i32.const 1024))
      (i32.store offset=4 (local.get $at) (i32.const 900000))
      (br_if $next (i32.lt_u
        (local.tee $at (i32.add (local.get $at) (i32.const 72)))
        (i32.const 1768576))))
    (i32.store (i32.const 520) (i32.const 1048576))
    (i32.store (i32.const 524) (i32.const 10000))
    (i32.const 512))
)
