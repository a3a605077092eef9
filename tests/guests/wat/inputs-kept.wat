(component
  ;; Takes its standard input again and again, and never drops it.
  (import "wasi:io/error@0.2.0" (instance $error
    (export "error" (type (sub resource)))))
  (alias export $error "error" (type $error))
  (import "wasi:io/streams@0.2.0" (instance $streams
    (alias outer 1 $error (type $of_error))
    (export "error" (type $error (eq $of_error)))
    (type $stream-error (variant (case "last-operation-failed" (own $error)) (case "closed")))
    (export "stream-error" (type $failed (eq $stream-error)))
    (export "input-stream" (type $input (sub resource)))
    (export "output-stream" (type $output (sub resource)))
    (export "[method]input-stream.read" (func
      (param "self" (borrow $input)) (param "len" u64) (result (result (list u8) (error $failed)))))
    (export "[method]output-stream.write-zeroes" (func
      (param "self" (borrow $output)) (param "len" u64) (result (result (error $failed)))))))
  (alias export $streams "input-stream" (type $input))
  (alias export $streams "output-stream" (type $output))
  (import "wasi:cli/stdin@0.2.0" (instance $stdin
    (alias outer 1 $input (type $of_streams))
    (export "input-stream" (type $input (eq $of_streams)))
    (export "get-stdin" (func (result (own $input))))))
  (import "wasi:cli/stdout@0.2.0" (instance $stdout
    (alias outer 1 $output (type $of_streams))
    (export "output-stream" (type $output (eq $of_streams)))
    (export "get-stdout" (func (result (own $output))))))
  (core module $libc
    (memory (export "memory") 4)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65536)))
  (core instance $libc (instantiate $libc))
  (alias core export $libc "memory" (core memory $memory))
  (alias core export $libc "realloc" (core func $realloc))
  (core func $stdin (canon lower (func $stdin "get-stdin")))
  (core module $main
    (import "host" "memory" (memory 1))
    (import "host" "stdin" (func $stdin (result i32)))
    (func (export "run") (result i32)
      (loop $for_ever
        (drop (call $stdin))
        (br $for_ever))
      (unreachable)))
  (core instance $main (instantiate $main (with "host" (instance
    (export "memory" (memory $memory))
    (export "stdin" (func $stdin))))))
  (func $run (result (result)) (canon lift (core func $main "run")))
  (instance $out (export "run" (func $run)))
  (export "wasi:cli/run@0.2.0" (instance $out))
)
