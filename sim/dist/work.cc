#include "sim/dist/work.h"

#include "sim/dist/backend.h"

namespace rollcall {

void Work::wait() const {
  if (backend_ != nullptr) {
    backend_->wait(*this);
  }
}

void Work::wait(Duration timeout) const {
  if (backend_ != nullptr) {
    backend_->wait_for(*this, timeout);
  }
}

bool Work::is_completed() const { return backend_ == nullptr || backend_->is_completed(*this); }

}  // namespace rollcall
