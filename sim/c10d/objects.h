#pragma once

// torch.distributed's object collectives, for the current rank. Each is a few ordinary collectives: objects are
// pickled, their sizes agreed on, and the bytes sent as uint8 tensors, padded to the longest. Reports show these steps,
// and each of them can go wrong, so none is skipped.
//
// All of them block. With NCCL the tensors live on the rank's GPU.

#include <optional>

#include "sim/base/site.h"
#include "sim/c10d/object.h"
#include "sim/c10d/process_group.h"

namespace rollcall {

// objects: world_size places; objects[r] receives group rank r's object.
void all_gather_object(ObjectList& objects, const Object& object, const ProcessGroup& group = {},
                       Site site = Site::here());
// objects: sent by global rank `src`, overwritten on the others, whose lists have the same length.
void broadcast_object_list(ObjectList& objects, Rank src = 0, const ProcessGroup& group = {},
                           Site site = Site::here());
// objects: world_size places on global rank `dst`, null elsewhere.
void gather_object(const Object& object, ObjectList* objects, Rank dst = 0, const ProcessGroup& group = {},
                   Site site = Site::here());
// The same between two ranks, since 2.5. The receiver's list is as long as the sender's; returns the sender.
void send_object_list(const ObjectList& objects, Rank dst, const ProcessGroup& group = {},
                      Site site = Site::here());
Rank recv_object_list(ObjectList& objects, std::optional<Rank> src = {}, const ProcessGroup& group = {},
                      Site site = Site::here());
// inputs: world_size objects on `src`, ignored elsewhere. outputs: the first place receives one.
void scatter_object_list(ObjectList& outputs, const ObjectList& inputs, Rank src = 0,
                         const ProcessGroup& group = {}, Site site = Site::here());

}  // namespace rollcall
