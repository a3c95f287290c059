#include "sim/dist/work.h"

#include "sim/dist/backend.h"

namespace rollcall {

void Work::wait() const {
  if (backend_ != nullptr) {
    backend_->wait(*this);
  }
}

bool Work::is_completed() const { return backend_ == nullptr || backend_->is_completed(*this); }

}  // namespace rollcall
