;; Takes memory until it is refused, and then gives up as an allocator does.
(func $run (result i32)
  (loop $more
    (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
  (unreachable))
