#pragma once

// Imports the hang library's format: real failures of distributed jobs, reduced to the calls of each rank.
// One
// file is one scenario; its ops become statements one to one. Differences between the two languages:
//
//   all_to_all     becomes all_to_all_single with split sizes
//   device_sync    becomes synchronize, batch_p2p becomes batch_isend_irecv, set becomes fill
//   reduce_scatter on a tensor leaves its result in that tensor: it is copied back
//   comm_split     becomes split_group, destroy_group becomes destroy_process_group
//   compute        is put before a store_get it follows: there, waiting for a key takes none of a rank's time
//   stream         streams that the file does not order (no device_model) become threads of a parallel
//   calls block    until they are done, on nccl too: blocking_wait is set

#include <string>

namespace rollcall::scenario {

enum class HangVariant { failing, fixed };

// Returns the scenario, as the text of a file. Throws InvalidScenario if the file cannot be read, is not in
// the
// format, or holds something that scenarios cannot express.
std::string import_hang(const std::string& path, HangVariant variant);

}  // namespace rollcall::scenario
