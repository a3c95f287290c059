#pragma once

// How a backend whose calls run on a device reports them to the log, while the rank's host waits for the device.

#include "sim/base/time.h"
#include "sim/c10d/work.h"

namespace rollcall::real {

class DeviceWatcher {
 public:
  virtual ~DeviceWatcher() = default;

  // The GPU's clock starts now.
  virtual void clock_starts() = 0;
  // The call has completed, and ran from `from` to `to` by that clock.
  virtual void ran(const Work& work, Duration from, Duration to) = 0;
  // The host waits, ultimately for this call. Called repeatedly, on the rank's own thread.
  virtual void blocked_in(const Work& work) = 0;
  // The call that is being issued needs a communicator that does not exist yet: the host waits for the other members.
  // Called repeatedly.
  virtual void connecting() = 0;
  virtual void connected() = 0;
};

class WatchedDevice {
 public:
  virtual ~WatchedDevice() = default;

  // `watcher` is borrowed.
  virtual void watch(DeviceWatcher& watcher) = 0;
};

}  // namespace rollcall::real
