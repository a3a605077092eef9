(module
  ;; Two thousand outputs that all have one list of two thousand pairs for metadata.
  (memory (export "memory") 32)
  (global $free (mut i32) (i32.const 65536))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 15)) (i32.const -16)))
    (global.set $free (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (data (i32.const 16) "metadata")
  (func (export "pugmark:handler/step@0.1.0#fold") (param i32) (result i32)
    (i32.const 256))
  (func (export "pugmark:handler/step@0.1.0#decide") (result i32)
    (local $at i32)
    (local.set $at (i32.const 65536))
    (loop $pairs
      (i32.store offset=0 (local.get $at) (i32.const 16))
      (i32.store offset=4 (local.get $at) (i32.const 8))
      (i32.store offset=8 (local.get $at) (i32.const 16))
      (i32.store offset=12 (local.get $at) (i32.const 8))
      (br_if $pairs (i32.lt_u
        (local.tee $at (i32.add (local.get $at) (i32.const 16)))
        (i32.const 97536))))
    (local.set $at (i32.const 1048576))
    (loop $outputs
      (i32.store offset=56 (local.get $at) (i32.const 65536))
      (i32.store offset=60 (local.get $at) (i32.const 2000))
      (br_if $outputs (i32.lt_u
        (local.tee $at (i32.add (local.get $at) (i32.const 72)))
        (i32.const 1192576))))
    (i32.store (i32.const 520) (i32.const 1048576))
    (i32.store (i32.const 524) (i32.const 2000))
    (i32.const 512))
)
