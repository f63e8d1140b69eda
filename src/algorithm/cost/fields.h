/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of struct tconv_machine: name, value, least value, unit, meaning. The values are those
 * of a CPU with 32 vector registers of 64 bytes; machine.c has what differs elsewhere. The least
 * value is 1 if the model divides by the field or makes an integer of it (0.1 for unit_issue), or
 * what kernels need. Cycles are those of one core. A "madd" is one multiply-add of one lane at full
 * speed; a core does lanes * adds of them in a cycle. */
#ifndef TCONV_ALGORITHM_MACHINE_FIELDS_H
#define TCONV_ALGORITHM_MACHINE_FIELDS_H

/* clang-format off */

/* The hardware: what OpenCL reports, then what data sheets say. */
#define TCONV_HARDWARE_FIELDS(F)                                                                   \
    F(units, 1, 1, "number", "compute units")                                                      \
    F(lanes, 1, 1, "number", "lanes of a vector of accumulators; 1: work-items are lanes")         \
    F(clock, 3000, 1, "MHz", "clock rate")                                                         \
    F(l3, 32 << 20, 1, "bytes", "last-level cache")                                                \
    F(l2, 1 << 20, 1, "bytes", "second-level cache of a core")                                     \
    F(l1, 48 << 10, 1, "bytes", "first-level cache of a core")                                     \
    F(line, 64, 1, "bytes", "cache line")                                                          \
    F(registers, 32, 1, "number", "vector registers")                                              \
    F(adds, 2, 1, "per cycle", "vector multiply-adds")                                             \
    F(loads, 2, 1, "per cycle", "vector loads")                                                    \
    F(issue, 6, 1, "per cycle", "instructions of an innermost loop")                               \
    F(latency, 4, 1, "cycles", "of a multiply-add")

/* GPU defaults, fitted to times predicted from code compiled for NVIDIA cards; used for any GPU
 * without its own table. */
#define TCONV_GPU_FIELDS(F)                                                                        \
    F(item_sums, 128, 16, "number", "sums of 32 bits that a work-item may keep in registers")      \
    F(unit_lanes, 128, 1, "per cycle", "multiply-adds of a compute unit")                          \
    F(warp, 32, 1, "number", "work-items that go on together")                                     \
    F(unit_warps, 32, 1, "number", "warps that a compute unit holds")                              \
    F(unit_registers, 65536, 1, "number", "registers of 32 bits of a compute unit")                \
    F(unit_issue, 3.2, 0.1, "per cycle", "instructions of a unit's warps: 4 schedulers, 0.8 each") \
    F(unit_read, 4, 1, "cycles", "of local memory, for 16 bytes of each work-item of a warp")      \
    F(unit_local, 3, 1, "ratio", "of a unit's local memory to what a work-group may have")         \
    F(core_engines, 8, 1, "number", "vector engines of Intel's GPUs that share local memory")      \
    F(engine_threads, 7, 1, "number", "that such an engine holds")                                 \
    F(unit_l2, 20, 1, "bytes", "that a unit has from the cache in a cycle, if all units read")     \
    F(unit_dram, 10, 1, "bytes", "the same from memory")                                           \
    F(gpu_launch, 6000, 0, "cycles", "of one more launch in a queue")                              \
    F(gpu_begin, 20e3, 0, "cycles", "of a launch, of dependent loads and of the last work-groups") \
    F(gpu_wait, 60, 0, "cycles", "of an iteration that waits for its loads")

/* Implicit GEMM on GPUs (tiled.c); instructions are those of a warp. */
#define TCONV_TILED_FIELDS(F)                                                                      \
    F(tiled_registers, 104, 0, "number", "registers of a work-item beside its accumulators")       \
    F(tiled_sliced, 50, 0, "number",                                                               \
      "additional registers of a work-item if the tile is sliced and has 8 x 8 accumulators")      \
    F(tiled_stage, 60, 0, "number", "instructions of a stage beside products, reads and copies")   \
    F(tiled_weight, 3, 0, "number", "instructions to copy four weights")                           \
    F(tiled_input, 4, 0, "number", "instructions to copy an input")                                \
    F(tiled_difference, 9, 0, "number", "instructions to fetch another one and subtract it")       \
    F(tiled_stage_wait, 580, 0, "cycles", "of a warp in a stage beside its instructions")          \
    F(tiled_begin, 1200, 0, "number", "instructions before and after all stages")                  \
    F(tiled_begin_wait, 6000, 0, "cycles", "of loads before and after all stages")                 \
    F(tiled_store, 14, 0, "number", "instructions to store an accumulator")                        \
    F(tiled_around_wait, 3.9, 0, "cycles", "of an instruction before and after all stages")        \
    F(tiled_part_wait, 500, 0, "cycles", "to add the sums of a part")                              \
    F(tiled_sums, 64, 16, "number", "accumulators of a work-item, at most")                        \
    F(tiled_long, 0, 0, "number", "1: stages of 16 channels pay without slices, too")

/* Implicit GEMM by matrix units of GPUs (matrix.c); instructions are those of a warp. */
#define TCONV_MATRIX_FIELDS(F)                                                                     \
    F(matrix_speed, 4, 1, "ratio", "of the unit to f32, for words of 32 bits")                     \
    F(matrix_registers, 100, 0, "number", "registers of a work-item beside those of the tile")     \
    F(matrix_stage, 3, 0, "number", "instructions of a stage beside products, reads and copies")   \
    F(matrix_quad, 5, 0, "number", "instructions to copy 16 bytes")                                \
    F(matrix_weight, 5, 0, "number",                                                               \
      "instructions to copy 16 bytes of weights if the data are NCX; fitted, so also for latency") \
    F(matrix_element, 13, 0, "number", "more, for each element that is loaded alone")              \
    F(matrix_stage_wait, 960, 0, "cycles", "of a stage beside its instructions")                   \
    F(matrix_begin, 1200, 0, "number", "instructions before and after all stages")                 \
    F(matrix_begin_wait, 7000, 0, "cycles", "of loads before and after all stages")                \
    F(matrix_store, 16, 0, "number", "instructions to store an output")                            \
    F(matrix_store_wait, 2.6, 0, "cycles", "of an output")                                         \
    F(matrix_finish_wait, 7000, 0, "cycles", "of the launch that adds up parts")                   \
    F(matrix_part_wait, 500, 0, "cycles", "to add the sums of a part")

/* The same by NVIDIA's wgmma. Predicted: from data sheets, from published times of products of
 * matrices on an H100, which reach wgmma_share of what the multiplier, local memory or the cache
 * allow, and from instructions that scripts/loop_counts.py counts. No kernel was measured. */
#define TCONV_WGMMA_FIELDS(F)                                                                      \
    F(wgmma_speed, 8, 1, "ratio", "of the unit to f32, for words of 32 bits")                      \
    F(wgmma_local, 128, 1, "bytes", "of local memory that are read and written in a cycle")        \
    F(wgmma_l2, 44, 1, "bytes", "that a unit has from the cache in a cycle")                       \
    F(wgmma_share, 0.56, 0.1, "ratio", "of a stage's bound that is reached")                       \
    F(wgmma_stage, 75, 0, "number", "instructions of a stage beside copies")                       \
    F(wgmma_stage_wait, 330, 0, "cycles", "of a stage of a group that has the unit for itself")    \
    F(wgmma_begin_wait, 5000, 0, "cycles", "before and after all stages")                          \
    F(wgmma_early_ends, 1000, 0, "cycles", "of them, if ends are found while stages are copied")   \
    F(wgmma_store_wait, 62.5, 0, "cycles", "of an output")

/* What differs for a family of GPUs: a list for each row of base/architectures.h, whose fields
 * machine.c sets. A value may ask `device`, and `machine` as it is so far.
 *
 * NVIDIA's GPUs: fields of the tiled algorithm fitted to an H200 (docs/benchmarks/h200.md), of the
 * matrix algorithm to an H100 (docs/benchmarks/h100.md). */
#define TCONV_NVIDIA_FIELDS(F)                                                                     \
    F(unit_l2, 17) F(gpu_begin, 40e3) F(tiled_registers, 88) F(tiled_stage, 170)                   \
    F(tiled_weight, 1.8) F(tiled_input, 19) F(tiled_stage_wait, 820) F(tiled_begin, 130)           \
    F(tiled_begin_wait, 2100) F(tiled_store, 5) F(tiled_around_wait, 2.8) F(tiled_part_wait, 300)  \
    F(matrix_registers, 119) F(matrix_stage, 3.57) F(matrix_quad, 7.04) F(matrix_weight, 18.9)     \
    F(matrix_element, 8.5) F(matrix_stage_wait, 1140) F(matrix_begin, 4030)                        \
    F(matrix_begin_wait, 4940) F(matrix_store, 19) F(matrix_store_wait, 58.5) F(tiled_long, 1)

/* AMD's GPUs. OpenCL's compute units of RDNA are pairs of the units here. */
#define TCONV_AMD_RDNA_FIELDS(F)                                                                   \
    F(units, 2 * machine.units) F(unit_lanes, 128) F(warp, 32) F(unit_warps, 32)                   \
    F(unit_registers, 98304) F(unit_issue, 1.6) F(unit_read, 4) F(unit_local, 1) F(unit_l2, 10)    \
    F(unit_dram, 4) F(gpu_begin, 20e3) F(gpu_wait, 400) F(direct_part_wait, 200)                   \
    F(tiled_registers, 20.9) F(tiled_sliced, 74.5) F(tiled_stage, 146) F(tiled_weight, 4.65)       \
    F(tiled_input, 0.585) F(tiled_stage_wait, 1160) F(tiled_begin, 465) F(tiled_begin_wait, 869)   \
    F(tiled_store, 21.4) F(tiled_around_wait, 9.7) F(tiled_part_wait, 10.4) F(matrix_speed, 1.45)  \
    F(matrix_registers, 6) F(matrix_stage, 6) F(matrix_quad, 1) F(matrix_weight, 1)                \
    F(matrix_element, 7.7) F(matrix_stage_wait, 525) F(matrix_begin, 1200)                         \
    F(matrix_begin_wait, 8400) F(matrix_store, 0.5) F(matrix_store_wait, 17)                       \
    F(matrix_finish_wait, 1570) F(matrix_part_wait, 280) F(tiled_sums, 128)

#define TCONV_AMD_CDNA_FIELDS(F)                                                                   \
    F(unit_lanes, 128) F(warp, 64) F(unit_warps, 32) F(unit_registers, 131072) F(unit_issue, 0.8)  \
    F(unit_read, 8) F(unit_local, 1) F(unit_l2, 20) F(unit_dram, 8) F(gpu_begin, 60e3)             \
    F(gpu_wait, 400) F(direct_part_wait, 800) F(tiled_registers, 77.7) F(tiled_sliced, 83.8)       \
    F(tiled_stage, 32.8) F(tiled_weight, 14) F(tiled_input, 6.9) F(tiled_stage_wait, 3370)         \
    F(tiled_begin, 1420) F(tiled_begin_wait, 1) F(tiled_store, 28.1) F(tiled_around_wait, 9.4)     \
    F(tiled_part_wait, 1) F(matrix_speed, 6.67) F(matrix_registers, 92) F(matrix_stage, 6)         \
    F(matrix_quad, 30) F(matrix_weight, 30) F(matrix_element, 4) F(matrix_stage_wait, 1310)        \
    F(matrix_begin, 1480) F(matrix_begin_wait, 16500) F(matrix_store, 0.25)                        \
    F(matrix_store_wait, 2.4) F(matrix_finish_wait, 1610) F(matrix_part_wait, 243)

/* GPUs of phones and boards: Mali, Adreno, PowerVR, VideoCore. These are data sheets' numbers of a
 * Mali-G78, an Adreno 740, a Rogue GE8320 and a VideoCore VI (8 QPUs of 4 lanes and 16 work-items,
 * 64 registers for each of two threads); no such GPU was measured. A work-item of Mali has 64
 * registers. */
#define TCONV_MALI_FIELDS(F)                                                                       \
    F(item_sums, 16) F(unit_lanes, 32) F(warp, 16) F(unit_warps, 64) F(unit_registers, 32768)      \
    F(unit_issue, 1.6) F(unit_read, 4) F(unit_local, 1) F(unit_l2, 16) F(unit_dram, 3)             \
    F(direct_dense, 1e6)

#define TCONV_ADRENO_FIELDS(F)                                                                     \
    F(item_sums, 32) F(unit_lanes, 256) F(warp, 64) F(unit_warps, 32) F(unit_registers, 49152)     \
    F(unit_issue, 3.2) F(unit_read, 8) F(unit_local, 1) F(unit_l2, 32) F(unit_dram, 16)            \
    F(direct_dense, 1e6)

#define TCONV_POWERVR_FIELDS(F)                                                                    \
    F(item_sums, 32) F(unit_lanes, 32) F(warp, 32) F(unit_warps, 16) F(unit_registers, 32768)      \
    F(unit_issue, 0.8) F(unit_read, 8) F(unit_local, 1) F(unit_l2, 32) F(unit_dram, 16)            \
    F(direct_dense, 1e6)

#define TCONV_VIDEOCORE_FIELDS(F)                                                                  \
    F(item_sums, 16) F(unit_lanes, 32) F(warp, 16) F(unit_warps, 32) F(unit_registers, 16384)      \
    F(unit_issue, 2) F(unit_read, 4) F(unit_local, 1) F(unit_l2, 16) F(unit_dram, 8)               \
    F(direct_dense, 1e6)

/* Intel's GPUs since Xe-HP: Xe-HP and Xe-HPG, whose sub-groups have 8 lanes at least, and Xe-HPC
 * and Xe2, where they have 16. A core has 128 lanes, so 16 or 8 engines, 512 KiB of registers and
 * 128 KiB of local memory; a work-group of Xe-HPG gets at most half of it. An engine holds 8
 * threads; those of Gen9 to Xe-LP, the defaults, 7. Sources: "Introduction to the Xe-HPG
 * Architecture" (Intel, 2022); "Ponte Vecchio" (Intel, Hot Chips 2021); max_eus_per_wg and
 * threads_per_eu in oneDNN's src/gpu/intel/compute/device_info.cpp.
 * The default of matrix_speed is right: in a cycle a matrix engine of Xe-HPG does 64 multiply-adds
 * of f16, a vector engine 8 of f32. Xe2 has the same ratio. Xe-HPC has twice that, but reports
 * nothing that tells it from Xe2. */
#define LANES_8 (device->subgroup_least == 8)
#define TCONV_INTEL_XE_HP_FIELDS(F)                                                                \
    F(unit_registers, 131072) F(unit_local, LANES_8 ? 2 : 1) F(core_engines, LANES_8 ? 16 : 8)     \
    F(engine_threads, 8)

/* Direct computation on GPUs (direct.c); instructions are those of a warp. */
#define TCONV_DIRECT_FIELDS(F)                                                                     \
    F(direct_dense, 8, 0, "number", "input channels of a group, at most, for vectors of channels") \
    F(direct_begin, 220, 0, "number", "instructions before the first product")                     \
    F(direct_begin_loads, 45, 0, "number", "loads before the first product")                       \
    F(direct_begin_wait, 3500, 0, "cycles", "of these loads")                                      \
    F(direct_row, 16, 0, "number", "instructions to begin a row of taps")                          \
    F(direct_row_wait, 450, 0, "cycles", "of the loads of a row of taps")                          \
    F(direct_part, 6, 0, "number", "instructions to begin a channel of a row of taps")             \
    F(direct_part_wait, 200, 0, "cycles", "of the loads of a further channel")                     \
    F(direct_address, 4, 0, "number", "instructions of a load, of several input channels")         \
    F(direct_store, 10, 0, "number", "instructions to store an accumulator")                       \
    F(direct_store_lane, 2, 0, "number", "more, for each further accumulator of a vector")

/* What all algorithms for CPUs have in common. */
#define TCONV_CPU_FIELDS(F)                                                                        \
    F(sums, 26, 1, "number", "vectors of accumulators that compilers keep in registers")           \
    F(crossing, 1.5, 0, "ratio", "instructions of a load that may cross a cache line")             \
    F(round, 5, 0, "number", "instructions that begin a round of an innermost loop")               \
    F(narrow, 1.1, 0, "ratio", "cycles of a tile that is one vector wide")                         \
    F(overhead, 0.05, 0, "ratio", "cycles beside the multiply-adds")                               \
    F(wake, 100e3, 0, "cycles", "until another thread works at full speed")                        \
    F(wake_share, 0.25, 0, "ratio", "of the work that another thread misses at most")              \
    F(wait_l3, 2, 0, "madds", "to wait for a byte of weights from l3")                             \
    F(wait_memory, 4, 0, "madds", "the same from memory")                                          \
    F(hidden, 0.3, 0, "ratio", "of the multiply-adds that hide the loads of weights")              \
    F(streamed_output, 0.5, 0, "ratio", "of l3; larger outputs bypass the caches")

/* One vector of outputs along a row (packed.c). */
#define TCONV_PACKED_FIELDS(F)                                                                     \
    F(packed_budget, 0.75, 0, "ratio", "of l2 that packed inputs may take")                        \
    F(packed_block, 0.2, 0, "ratio", "of a tap's cycles that each block of channels adds")         \
    F(packed_hold, 0.6, 0, "ratio", "of a tap that stores take, where taps do not overlap")        \
    F(packed_single, 1.6, 0, "ratio", "cycles of a tile of one channel")                           \
    F(packed_several, 1.08, 0, "ratio", "cycles of other tiles")                                   \
    F(packed_store, 24, 0, "madds", "to store an output as part of a vector")                      \
    F(packed_store_thirds, 50, 0, "madds", "the same with three phases in a vector")               \
    F(packed_store_fours, 13, 0, "madds", "more, to store an output as one of four")               \
    F(packed_store_ones, 21, 0, "madds", "more, to store an output alone")                         \
    F(packed_store_phase, 60, 0, "madds", "to store an output of one phase alone")                 \
    F(packed_store_apart, 100, 0, "madds", "to store an output of a strided row")                  \
    F(packed_copy, 2.5, 0, "madds", "to copy an input as part of a vector")                        \
    F(packed_copy_border, 38, 0, "madds", "more, to copy an input at a row's end")                 \
    F(packed_copy_apart, 48, 0, "madds", "to copy an input of a strided row")                      \
    F(packed_tap, 600, 0, "madds", "to begin and end a tap's loop")                                \
    F(packed_chunks, 1.3, 0, "ratio", "cost of input channels in chunks")                          \
    F(packed_item, 10e3, 0, "madds", "to begin a work-item")

/* Rows of few channels (thin.c). */
#define TCONV_THIN_FIELDS(F)                                                                       \
    F(thin_budget, 0.25, 0, "ratio", "of l2 that copied inputs may take")                          \
    F(thin_rows, 0.75, 0, "ratio", "of the accumulators that a band of rows may take")             \
    F(thin_block, 0.6, 0, "cycles", "of a tap row beside its products")                            \
    F(thin_block_factor, 1.05, 0, "ratio", "cycles of a tile of several vectors and channels")     \
    F(thin_row, 1, 0, "cycles", "of a tap row of other tiles")                                     \
    F(thin_row_factor, 0.08, 0, "ratio", "more cycles of such tiles")                              \
    F(thin_begin, 8, 0, "cycles", "to begin a tap row")                                            \
    F(thin_again, 0.1, 0, "cycles", "to load inputs again for each block of one channel")          \
    F(thin_weights, 4, 0, "cycles", "to load a line of weights that l1 does not hold")             \
    F(thin_held_weights, 1.0 / 3, 0, "ratio", "of l1 that weights may take")                       \
    F(thin_ahead, 1500, 0, "bytes", "between rows that prefetchers follow")                        \
    F(thin_far, 0.1, 0, "cycles", "to wait for a byte of inputs whose rows are further apart")     \
    F(thin_near, 0.01, 0, "cycles", "the same of others that exceed twice l1")                     \
    F(thin_copy_begin, 10, 0, "cycles", "to begin a copy of an input row")                         \
    F(thin_copy, 2.5, 0, "cycles", "to copy a vector of it")                                       \
    F(thin_ahead_begin, 12, 0, "cycles", "to begin such a copy after a prefetch")                  \
    F(thin_ahead_copy, 1.5, 0, "cycles", "to copy a vector after a prefetch")                      \
    F(thin_store_begin, 10, 0, "cycles", "to begin storing a tile's row")                          \
    F(thin_store_band, 20, 0, "cycles", "to begin storing a band")                                 \
    F(thin_store_one, 1, 0, "cycles", "to store a vector of one phase")                            \
    F(thin_store_even, 3, 0, "cycles", "to interleave and store a vector of 2 or 4 phases")        \
    F(thin_store_odd, 5, 0, "cycles", "the same of 3 or 8 phases")                                 \
    F(thin_plane, 40, 0, "cycles", "to begin a plane")                                             \
    F(thin_item, 700, 0, "cycles", "to begin a work-item")

/* Vectors of channels, of phases, and of bytes (channels.c). */
#define TCONV_CHANNELS_FIELDS(F)                                                                   \
    F(channels_budget, 0.625, 0, "ratio", "of l2 that copied inputs may take")                     \
    F(channels_weights, 2.3, 0, "cycles", "to load a vector of weights from l2")                   \
    F(channels_last_factor, 1.05, 0, "ratio", "cycles of a tile whose outputs are vectors")        \
    F(channels_rows_factor, 1.1, 0, "ratio", "the same whose outputs are rows")                    \
    F(channels_segment, 8, 0, "cycles", "to begin a segment of input channels")                    \
    F(channels_chunk, 12, 0, "cycles", "to begin a chunk of input channels")                       \
    F(channels_store, 4, 0, "cycles", "to store a vector")                                         \
    F(channels_position, 6, 0, "cycles", "to begin storing a position")                            \
    F(channels_scatter, 2, 0, "cycles", "to store one lane that is not beside the next")           \
    F(channels_scatter_step, 20, 1, "elements", "between lanes that take a cycle more")            \
    F(channels_scatter_most, 30, 0, "cycles", "at most")                                           \
    F(channels_row, 1.2, 0, "cycles", "to keep an accumulator and store it in its row")            \
    F(channels_row_overlap, 2, 0, "cycles", "the same where a row's last vectors overlap")         \
    F(channels_row_part, 2.4, 0, "cycles", "the same where a row is shorter than a vector")        \
    F(channels_row_bytes, 0.6, 0, "ratio", "of these three where outputs are bytes")               \
    F(channels_again, 3, 0, "cycles", "to keep a vector of accumulators for the next chunk")       \
    F(channels_copy, 2.5, 0, "cycles", "to copy a vector of channels, or one input of a row")      \
    F(channels_copy_row, 1.1, 0, "cycles", "to copy and transpose an input of a row")              \
    F(channels_copy_rows, 1.8, 0, "cycles", "the same of several rows together")                   \
    F(channels_copy_part, 18, 0, "cycles", "to copy a row that is shorter than a vector")          \
    F(channels_copy_position, 8, 0, "cycles", "to begin copying an input point")                   \
    F(channels_copy_begin, 240, 0, "cycles", "to begin a piece of a row")                          \
    F(channels_held, 600e3, 0, "bytes", "of weights of a phase that caches hold for the next row") \
    F(channels_l2, 16, 1, "bytes", "of weights that l2 delivers in a cycle")                       \
    F(channels_l3, 8, 1, "bytes", "the same of l3")                                                \
    F(channels_near, 4, 0, "ratio", "of l2; larger weights come from l3")                          \
    F(channels_wait, 0.125, 0, "ratio", "of their loads that multiply-adds never hide")            \
    F(channels_positions, 12, 0, "number", "of positions whose outputs prefetchers follow")        \
    F(channels_fetch, 20, 0, "cycles", "to fetch a line before a part of it is written")           \
    F(channels_item, 200, 0, "cycles", "to begin a work-item")

/* Depthwise layers, channels last (depthwise.c). */
#define TCONV_DEPTHWISE_FIELDS(F)                                                                  \
    F(depthwise_tap, 1, 0, "cycles", "of a tap beside its products")                               \
    F(depthwise_tile, 30, 0, "cycles", "to begin a phase of a tile")                               \
    F(depthwise_block, 8, 0, "cycles", "to begin storing a block of channels")                     \
    F(depthwise_store, 2, 0, "cycles", "to store a vector")                                        \
    F(depthwise_item, 300, 0, "cycles", "to begin a work-item")

/* Winograd (winograd.c). */
#define TCONV_WINOGRAD_FIELDS(F)                                                                   \
    F(winograd_budget, 0.9375, 0, "ratio", "of l2 that transformed inputs and sums may take")      \
    F(winograd_far, 0.625, 0, "ratio", "of l3; larger weights come from memory")                   \
    F(winograd_block, 0.6, 0, "ratio", "of a point's cycles that each block of channels adds")     \
    F(winograd_gather, 36, 0, "madds", "to begin collecting a row of a tile's inputs")             \
    F(winograd_gather_run, 6, 0, "madds", "to collect each run or point of it")                    \
    F(winograd_transform, 12, 0, "madds", "to transform a point of inputs along an axis")          \
    F(difference_transform, 1, 0, "madds", "the same for differences of neighbours")               \
    F(winograd_sum, 8, 0, "madds", "to transform a point of accumulators")                         \
    F(winograd_store, 40, 0, "madds", "to store an output as part of a vector")                    \
    F(winograd_store_run, 5, 0, "madds", "more for each run of it")                                \
    F(winograd_store_apart, 150, 0, "madds", "to store an output through local memory")            \
    F(winograd_strided, 4, 0, "ratio", "cost of storing to strided rows")                          \
    F(winograd_begin, 2500, 0, "madds", "to begin a product of a point")                           \
    F(winograd_keep, 5, 0, "madds", "to store an accumulator")                                     \
    F(winograd_keep_again, 14, 0, "madds", "to load and store an accumulator between chunks")      \
    F(winograd_wait, 5500, 0, "madds", "to wait for a point's weights from memory")                \
    F(winograd_item, 1500, 0, "madds", "to begin a work-item")

/* The portable algorithms (gather.c, col2im.c, reference.c). */
#define TCONV_PORTABLE_FIELDS(F)                                                                   \
    F(gather_tile, 1.04, 0, "ratio", "cycles of a tile beside its loads")                          \
    F(gather_load, 0.3, 0, "ratio", "cycles of a load that products do not hide")                  \
    F(gather_narrow, 1.07, 0, "ratio", "cycles of a tile that is one vector wide")                 \
    F(gather_store, 2, 0, "madds", "to store an output as part of a vector")                       \
    F(gather_store_apart, 16, 0, "madds", "to store an output alone")                              \
    F(gather_store_page, 120, 0, "madds", "to store an output in a page of its own")               \
    F(gather_stage, 4, 0, "madds", "to copy an input to the workspace")                            \
    F(gather_begin, 375, 0, "madds", "to begin a work-item on a GPU")                              \
    F(gather_wait, 4, 0, "ratio", "time on a GPU of a multiply-add that has a load of its own")    \
    F(gather_bytes, 100, 0, "ratio", "cost of a product of bytes where it is not an instruction")  \
    F(col2im_load, 0.3, 0, "ratio", "cycles of a load that products do not hide")                  \
    F(col2im_narrow, 1.07, 0, "ratio", "cycles of a tile that is one vector wide")                 \
    F(col2im_tap, 13, 0, "madds", "to add a column to an output")                                  \
    F(col2im_store, 75, 0, "madds", "to store an output")                                          \
    F(col2im_zero, 25, 0, "madds", "to clear an accumulator")                                      \
    F(col2im_item, 22e3, 0, "madds", "to begin a work-item")                                       \
    F(col2im_group_tap, 2, 0, "madds", "to add a column to an output, work-items being lanes")     \
    F(col2im_group_store, 24, 0, "madds", "to store an output, work-items being lanes")            \
    F(col2im_wait, 8, 0, "ratio", "time on a GPU of a multiply-add that has a load of its own")    \
    F(reference_tap, 200, 0, "madds", "of a multiply-add")                                         \
    F(reference_output, 2000, 0, "madds", "to begin an output")                                    \
    F(reference_wait, 4, 0, "ratio", "time on a GPU of a multiply-add that has a load of its own") \
    F(sparse_tap, 500, 0, "madds", "to look at a tap for the next output that is reached")         \
    F(sparse_fill, 25, 0, "madds", "to store an output that no tap reaches")

/* Relations of every machine: smaller side, larger side, reason. A violation makes costs
 * meaningless. What a device and its machine have in common is checked by
 * host_tests/described_check.c. */
#define TCONV_MACHINE_RELATIONS(R)                                                                 \
    R(line, l1, "a cache holds a line at least")                                                   \
    R(l1, l2, "larger caches are further away")                                                    \
    R(l2, l3, "larger caches are further away")                                                    \
    R(sums, registers, "accumulators are kept in registers")                                       \
    R(adds, issue, "a multiply-add is an instruction")                                             \
    R(loads, issue, "a load is an instruction")                                                    \
    R(channels_l3, channels_l2, "larger caches are slower")                                        \
    R(unit_issue * warp, unit_lanes, "an instruction of a warp is a multiply-add in each lane")    \
    R(item_sums * warp, unit_registers, "a warp keeps its sums in registers")                      \
    R(unit_dram, unit_l2, "what comes from memory goes through the cache")

/* clang-format on */

#define TCONV_MACHINE_FIELDS(F)                                                                    \
    TCONV_HARDWARE_FIELDS(F)                                                                       \
    TCONV_GPU_FIELDS(F)                                                                            \
    TCONV_TILED_FIELDS(F)                                                                          \
    TCONV_MATRIX_FIELDS(F)                                                                         \
    TCONV_WGMMA_FIELDS(F)                                                                          \
    TCONV_DIRECT_FIELDS(F)                                                                         \
    TCONV_CPU_FIELDS(F)                                                                            \
    TCONV_PACKED_FIELDS(F)                                                                         \
    TCONV_THIN_FIELDS(F)                                                                           \
    TCONV_CHANNELS_FIELDS(F)                                                                       \
    TCONV_DEPTHWISE_FIELDS(F)                                                                      \
    TCONV_WINOGRAD_FIELDS(F)                                                                       \
    TCONV_PORTABLE_FIELDS(F)

#endif
