// Family p2p: messages between two ranks, in and out of order, and some that never meet.

#include <algorithm>

#include "tests/conformance/programs.h"

namespace rollcall::golden {

namespace {

Tensor number(double value) { return Tensor::full({1}, value); }

void simple(CaseContext& context) {
  Scope site("user.p2p_simple");
  Tensor tensor = ramp(context.rank(), 3);
  if (context.rank() == 0) {
    send(tensor, 1);
    context.put_none("returned");
  } else {
    context.put("returned", std::int64_t{recv(tensor, 0)});
  }
  context.put("out", tensor);
}

void recv_any(CaseContext& context) {
  Scope site("user.p2p_recv_any");
  if (context.rank() != 0) {
    send(number(10.0 * context.rank()), 0);
    return;
  }
  std::vector<std::pair<Rank, double>> got;
  for (int i = 0; i < 2; ++i) {
    Tensor tensor = number(0);
    const Rank source = recv(tensor);
    got.emplace_back(source, tensor.item());
  }
  std::sort(got.begin(), got.end());
  ObjectList rows;
  for (const auto& [source, value] : got) {
    rows.push_back(Object::list({source, value}));
  }
  context.put("got", Object::list(rows));
}

void async_exchange(CaseContext& context) {
  Scope site("user.p2p_async_exchange");
  const Rank other = 1 - context.rank();
  Tensor in = Tensor::zeros({2});
  const Work sending = isend(ramp(context.rank(), 2), other);
  const Work receiving = irecv(in, other);
  sending.wait();
  receiving.wait();
  context.put("out", in);
}

void batch_ring(CaseContext& context) {
  Scope site("user.p2p_batch_ring");
  Tensor in = Tensor::zeros({2});
  const PointToPoint batch[] = {
      {OpKind::send, ramp(context.rank(), 2), (context.rank() + 1) % 3},
      {OpKind::recv, in, (context.rank() + 2) % 3},
  };
  for (const Work& work : batch_isend_irecv(batch)) {
    work.wait();
  }
  context.put("out", in);
}

void cross_send(CaseContext& context) {
  Scope site("user.cross_send");
  const std::int64_t count = context.params().integer("numel");
  const Rank other = 1 - context.rank();
  send(Tensor::full({count}, context.rank()), other);
  Tensor tensor = Tensor::zeros({count});
  recv(tensor, other);
  context.put("first", Tensor::full({}, tensor.at(0)));
}

void cross_recv(CaseContext& context) {
  Scope site("user.p2p_cross_recv");
  recv(number(0), 1 - context.rank());
  send(number(1), 1 - context.rank());
}

void ring_send(CaseContext& context) {
  Scope site("user.p2p_ring_send");
  send(number(context.rank()), (context.rank() + 1) % 3);
  Tensor tensor = number(0);
  recv(tensor, (context.rank() + 2) % 3);
  context.put("out", tensor);
}

void send_unreceived(CaseContext& context) {
  Scope site("user.p2p_send_unreceived");
  if (context.rank() == 0) {
    send(number(1), 1);
    context.mark("send returned");
  }
}

void isend_unreceived(CaseContext& context) {
  Scope site("user.p2p_isend_unreceived");
  if (context.rank() == 0) {
    const Work work = isend(number(1), 1);
    compute(second / 2);
    context.put("completed", work.is_completed());
  }
}

void tag_mismatch(CaseContext& context) {
  Scope site("user.p2p_tag_mismatch");
  if (context.rank() == 0) {
    send(number(1), 1, {.tag = 1});
  } else {
    recv(number(1), 0, {.tag = 2});
  }
}

void tags_out_of_order(CaseContext& context) {
  Scope site("user.p2p_tags_out_of_order");
  const bool sends = context.rank() == 0;
  Tensor first = number(sends ? 1 : 0);
  Tensor second_one = number(sends ? 2 : 0);
  std::vector<Work> works;
  if (sends) {
    works = {isend(first, 1, {.tag = 1}), isend(second_one, 1, {.tag = 2})};
  } else {
    works = {irecv(second_one, 0, {.tag = 2}), irecv(first, 0, {.tag = 1})};
  }
  for (const Work& work : works) {
    work.wait();
  }
  context.put("tag1", first);
  context.put("tag2", second_one);
}

void tags_out_of_order_blocking(CaseContext& context) {
  Scope site("user.p2p_tags_out_of_order_blocking");
  if (context.rank() == 0) {
    send(number(1), 1, {.tag = 1});
    send(number(2), 1, {.tag = 2});
    return;
  }
  Tensor tensor = number(0);
  for (const std::int32_t tag : {2, 1}) {
    recv(tensor, 0, {.tag = tag});
    context.add("out", tensor);
  }
}

void same_tag_fifo(CaseContext& context) {
  Scope site("user.<listcomp>");  // the Python program issues them from a list comprehension
  TensorList tensors;
  std::vector<Work> works;
  for (int i = 0; i < 4; ++i) {
    tensors.push_back(number(context.rank() == 0 ? i : 0));
    works.push_back(context.rank() == 0 ? isend(tensors.back(), 1) : irecv(tensors.back(), 0));
  }
  for (auto work = works.rbegin(); work != works.rend(); ++work) {
    work->wait();
  }
  if (context.rank() == 1) {
    context.put("out", tensors);
  }
}

// Rank 0 sends and rank 1 receives, each with a tensor of its own kind.
void send_as_it_is(CaseContext& context, const Tensor& tensor) {
  if (context.rank() == 0) {
    send(tensor, 1);
  } else {
    recv(tensor, 0);
  }
  context.put("out", tensor);
}

void size_recv_larger(CaseContext& context) {
  Scope site("user.p2p_size_recv_larger");
  send_as_it_is(context, ramp(context.rank(), context.rank() == 0 ? 2 : 4));
}

void size_recv_smaller(CaseContext& context) {
  Scope site("user.p2p_size_recv_smaller");
  send_as_it_is(context, ramp(context.rank(), context.rank() == 0 ? 4 : 2));
}

void size_recv_smaller_long(CaseContext& context) {
  Scope site("user.p2p_size_recv_smaller_long");
  const std::int64_t sent = context.params().integer("numel");
  if (context.rank() == 0) {
    send(Tensor::zeros({sent}), 1);
  } else {
    recv(Tensor::zeros({sent / 2}), 0);
  }
  context.put("through", true);
}

void dtype(CaseContext& context) {
  Scope site("user.p2p_dtype");
  send_as_it_is(context, ramp(context.rank(), 2, context.rank() == 0 ? Dtype::float32 : Dtype::int32));
}

void wrong_src(CaseContext& context) {
  Scope site("user.p2p_wrong_src");
  if (context.rank() == 0) {
    send(number(1), 1);
  } else if (context.rank() == 1) {
    recv(number(1), 2);
  }
}

void send_vs_broadcast(CaseContext& context) {
  Scope site("user.p2p_send_vs_broadcast");
  if (context.rank() == 0) {
    send(number(1), 1);
  } else {
    broadcast(number(1), 0);
  }
}

void pipeline_missing_recv(CaseContext& context) {
  Scope site("user.p2p_pipeline_missing_recv");
  const Rank rank = context.rank();
  const Tensor tensor = number(1);
  for (int micro = 0; micro < 2; ++micro) {
    const bool forgets = rank == 2 && micro == 1;
    if (rank > 0 && !forgets) {
      recv(tensor, rank - 1);
    }
    if (rank < 2) {
      send(tensor, rank + 1);
    }
  }
}

}  // namespace

std::span<const NamedProgram> p2p_programs() {
  static const NamedProgram table[] = {
      {"p2p_simple", simple},
      {"p2p_recv_any", recv_any},
      {"p2p_async_exchange", async_exchange},
      {"p2p_batch_ring", batch_ring},
      {"p2p_cross_send_*", cross_send},
      {"p2p_cross_recv", cross_recv},
      {"p2p_ring_send", ring_send},
      {"p2p_send_unreceived", send_unreceived},
      {"p2p_isend_unreceived", isend_unreceived},
      {"p2p_tag_mismatch", tag_mismatch},
      {"p2p_tags_out_of_order", tags_out_of_order},
      {"p2p_tags_out_of_order_blocking", tags_out_of_order_blocking},
      {"p2p_same_tag_fifo", same_tag_fifo},
      {"p2p_size_recv_larger", size_recv_larger},
      {"p2p_size_recv_smaller", size_recv_smaller},
      {"p2p_size_recv_smaller_long_*", size_recv_smaller_long},
      {"p2p_dtype", dtype},
      {"p2p_wrong_src", wrong_src},
      {"p2p_send_vs_broadcast", send_vs_broadcast},
      {"p2p_pipeline_missing_recv", pipeline_missing_recv},
  };
  return table;
}

}  // namespace rollcall::golden
