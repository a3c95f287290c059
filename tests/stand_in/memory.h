#pragma once

// The memory of the stand-in's GPUs. Its addresses are only for GPUs: a host that reads or writes one is ended. The
// memory is an unnamed file, which streams access at another address, and other processes by the number of this
// process.

#include <cstddef>
#include <cstdint>

namespace rollcall::stand_in {

inline constexpr std::size_t memory_size = std::size_t{1} << 36;  // addresses, not memory

bool is_device_memory(const void* address);

// Never null. `bytes` is not 0.
void* allocate(std::size_t bytes, int device);
// Ends the process if `address` is not the start of an allocation.
void release(void* address);

// Returns the GPU of the allocation that contains all `bytes` at `address`; -1 if there is none.
int device_of(const void* address, std::size_t bytes);

// Returns the address at which streams access it.
std::byte* bytes_of(void* address);
const std::byte* bytes_of(const void* address);

// The descriptor for other processes.
int memory_descriptor();
std::size_t offset_of(const void* address);

// Returns the memory of another process; null if that is gone.
const std::byte* open_memory(int process, int descriptor);

// Pinned memory of the host, for which copies do not wait.
void* allocate_pinned(std::size_t bytes);
void release_pinned(void* address);
bool is_pinned(const void* address, std::size_t bytes);

}  // namespace rollcall::stand_in
