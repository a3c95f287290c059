#pragma once

// The memory of the stand-in's GPUs. Its addresses are for GPUs only: a host that reads or writes one is ended. Behind
// them is a file without a name, which streams reach at another address, and other processes by this one's number.

#include <cstddef>
#include <cstdint>

namespace rollcall::stand_in {

inline constexpr std::size_t memory_size = std::size_t{1} << 36;  // addresses, not memory

bool is_device_memory(const void* address);

// Never null. `bytes` is not 0.
void* allocate(std::size_t bytes, int device);
// Ends the process where `address` is not the start of an allocation.
void release(void* address);

// The GPU of the allocation that holds all `bytes` at `address`; -1: there is none.
int device_of(const void* address, std::size_t bytes);

// Where streams find it.
std::byte* bytes_of(void* address);
const std::byte* bytes_of(const void* address);

// For other processes.
int memory_descriptor();
std::size_t offset_of(const void* address);

// The memory of a process, as others see it. Null: it is gone.
const std::byte* open_memory(int process, int descriptor);

// Memory of the host that copies do not wait for.
void* allocate_pinned(std::size_t bytes);
void release_pinned(void* address);
bool is_pinned(const void* address, std::size_t bytes);

}  // namespace rollcall::stand_in
