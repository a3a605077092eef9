(component
  ;; Asks for 16 MiB of random bytes at a time, for ever.
  (import "wasi:random/random@0.2.0" (instance $random
    (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
  (core module $libc
    (memory (export "memory") 300)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65536)))
  (core instance $libc (instantiate $libc))
  (alias core export $libc "memory" (core memory $memory))
  (alias core export $libc "realloc" (core func $realloc))
  (core func $random (canon lower (func $random "get-random-bytes") (memory $memory) (realloc $realloc)))
  (core module $main
    (import "host" "memory" (memory 1))
    (import "host" "random" (func $random (param i64 i32)))
    (func (export "run") (result i32)
      (loop $for_ever
        (call $random (i64.const 16777216) (i32.const 16))
        (br $for_ever))
      (unreachable)))
  (core instance $main (instantiate $main (with "host" (instance
    (export "memory" (memory $memory))
    (export "random" (func $random))))))
  (func $run (result (result)) (canon lift (core func $main "run")))
  (instance $out (export "run" (func $run)))
  (export "wasi:cli/run@0.2.0" (instance $out))
)
