;; Opens the same file until it is refused, and never closes one. Crashes if it was refused too early or too late.
(func $run (result i32)
  (local $opened i32)
  (block $refused
    (loop $again
      (call $open (i32.const 0x430) (i32.const 6) (i32.const 4096))
      (br_if $refused (i32.load8_u (i32.const 4096)))
      (local.set $opened (i32.add (local.get $opened) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $opened) (i32.const 1000)))))
  (if (i32.ne (local.get $opened) (i32.const 64)) (then (unreachable)))
  (global.get $ok))
