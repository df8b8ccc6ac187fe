// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/http.h"
#include "agent/object_watch.h"
#include "agent/pacing.h"
#include "pkg/api/node_claims.pb.h"
#include "pkg/base/status.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

// The devices that a node's driver for Dynamic Resource Allocation offers, as its daemon reports
// them, and the one ResourceSlice that lists them.
using cri_resmgr::v1::ShowDevicesRequest;

// kInvalidArgument: the API server would refuse the report, or no node can have such devices.
Status CheckDevices(std::string_view node, const ShowDevicesRequest& report);
// The `spec` of the object. Readers use the highest generation of a pool.
Json SliceSpec(std::string_view node, const ShowDevicesRequest& report, int64_t generation);
// The whole object; `uid` is the node's.
Json SliceObject(std::string_view node, std::string_view uid, const ShowDevicesRequest& report,
                 int64_t generation);

// Keeps the node's ResourceSlice equal to the devices that the daemon reported last. It watches the
// object, and writes it again when it vanishes or differs, each time with a higher generation. As
// the driver owns its pool, slices that a former driver of this name has left on the node are
// looked for before the first write, which gets a higher generation, and deleted after it. The
// kubelet deletes it when it starts, and when the driver is gone for half a minute; so it is
// written only while the daemon goes on reporting, and a write that takes effect later is taken
// back, also if its reply was lost: a driver that is gone keeps no devices. Writes are at least
// `gap` apart and sent within `soon`; the agent's first one is sent at a random time within
// `spread`. A write that the server refuses is logged once. It is tried again `first_pause` later,
// then after pauses that double up to `pause`: a server that has just started refuses all. For the
// same reason slices of a former driver are left only if their deletion was forbidden for a minute.
// Nothing is asked of the server before the first report. Thread-compatible.
class SliceWriter {
 public:
  struct Options {
    std::chrono::milliseconds spread{75'000};
    std::chrono::milliseconds soon{600};
    std::chrono::milliseconds gap{1000};
    std::chrono::milliseconds first_pause{5000};
    std::chrono::milliseconds pause{std::chrono::minutes(10)};
    // How long a report counts.
    std::chrono::milliseconds fresh{25'000};
    Backoff::Options backoff{.limit = std::chrono::milliseconds(200'000)};
    RetryOptions watch{};
  };

  SliceWriter(HttpTransport& transport, Clock& timers, std::string node, const Options& options,
              uint64_t seed);

  // nullopt: the object is removed. kInvalidArgument as from CheckDevices: the former report stays
  // in force. kPermissionDenied: the server has refused the last write, or to show the object; the
  // report is tried again all the same.
  Status Show(std::optional<ShowDevicesRequest> report);
  // Takes the node's object as it is now. Nothing is written before the first one.
  void NodeSeen(const Json& node);

 private:
  // The last report that was written, or that was found written, and its form at the server, which
  // leaves out fields whose feature gates are off.
  struct Accepted {
    ShowDevicesRequest report{};
    std::string uid{};  // the node's
    Json spec{};
  };

  // A slice of the driver and node that a former driver of the same name has left.
  struct Other {
    std::string name{};
    std::string uid{};
  };
  struct Generations {
    int64_t first = 0;
    int64_t last = 0;
  };
  using Handler = void (SliceWriter::*)(const HttpReply& reply);

  bool Fresh() const { return timers_.Steady() < fresh_until_; }
  void Follow();
  void Seen(const Json* object);
  bool UpToDate() const;
  bool IsLate() const;
  void Plan();
  void WriteDue();
  void Write();
  void Send(HttpRequest request, Handler done, Delivery::Wanted wanted = nullptr);
  void Survey();
  void Surveyed(const HttpReply& reply);
  void DeleteOther();
  void OtherDeleted(const HttpReply& reply);
  void Put();
  void Written(const HttpReply& reply);
  void Delete(const std::string& name, const std::string& uid, Handler done);
  void Remove();
  void Removed(const HttpReply& reply);
  void Look();
  void Found(const HttpReply& reply);
  void Pause(const Status& why);
  Status Refused() const;

  const std::string node_;
  const Options options_;
  HttpTransport& transport_;
  Clock& timers_;
  const uint64_t seed_;
  Jitter jitter_;
  std::string uid_;     // the node's; "": not seen yet
  std::string driver_;  // the driver whose object is watched; "": none
  std::optional<ShowDevicesRequest> wanted_;
  Clock::SteadyTime fresh_until_{};
  bool known_ = false;          // object_ is what the server has, as far as known
  std::optional<Json> object_;  // nullopt: there is none
  int64_t generation_ = 0;      // the highest one that was seen or sent
  // The generations written since the object was last known to be right while reports came.
  std::optional<Generations> unconfirmed_;
  bool surveyed_ = false;      // all slices of the driver and node were looked at
  std::vector<Other> others_;  // to be deleted after the next write
  ForbiddenPauses others_pauses_;
  Clock::SteadyTime others_due_{};  // the first report after it has others_ deleted
  std::optional<Accepted> accepted_;
  std::optional<ShowDevicesRequest> sent_;  // by the request under way; nullopt: a removal
  bool replaces_ = false;                   // the last write was one of an object that was there
  bool seen_ = false;                       // the watch showed the object since the last write
  bool paused_ = false;
  resmgr::Backoff pauses_;
  Status refusal_;  // the server's last one, which was logged; OK after a write that it took
  std::optional<Clock::SteadyTime> last_write_;
  Clock::SteadyTime due_{};
  EventLoop::HandlePtr timer_;
  Delivery delivery_;
  std::optional<RetryGate> gate_;
  std::optional<ObjectWatch> watch_;
};

}  // namespace resmgr::agent
