;; One string of 4 MiB, named a thousand times in one call: 4 GiB, if the host copied it.
(func $run (result i32)
  (local $at i32)
  (local.set $at (i32.const 8192))
  (loop $next
    ;; relation: source and target (pointer, length), type; the rest is zero, that is none.
    (i32.store (local.get $at) (i32.const 1048576))
    (i32.store offset=4 (local.get $at) (i32.const 4194304))
    (i32.store offset=8 (local.get $at) (i32.const 1048576))
    (i32.store offset=12 (local.get $at) (i32.const 4194304))
    (local.set $at (i32.add (local.get $at) (i32.const 56)))
    (br_if $next (i32.lt_u (local.get $at) (i32.const 64192))))
  (drop (call $emit_relations (i32.const 8192) (i32.const 1000)))
  (global.get $ok))
