// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/api/node_reports.pb.h"
#include "pkg/resmgr/observer.h"

namespace resmgr {

// The contents of a Kubernetes Event of a pod or, without a name, namespace and UID, of the node
// itself. Texts are printable.
using cri_resmgr::v1::PodEvent;

// An Event of the node that happened once.
PodEvent NodeEvent(bool warning, std::string_view reason, std::string message,
                   std::chrono::system_clock::time_point when);
// When an Event was seen, as the message has it.
int64_t SeenAt(std::chrono::system_clock::time_point when);

// Makes Events of pods from the resource manager's acts:
//   CPURefused         Warning: a container, an update of it, or its start was refused
//   CPUsMoved          Normal: a container got other exclusive CPUs without having asked for it
//   ExclusiveCpusLost  Warning: a container got fewer exclusive CPUs
// Moves of containers that share CPUs make no Events, since each grant of exclusive CPUs moves all
// of them; nor do changes that the kubelet requested. Pods without name, namespace or UID, which no
// kubelet created, have no Events. Loop's thread only.
class PodEventWatch final : public Observer {
 public:
  using Tell = std::function<void(PodEvent event)>;
  using WallClock = std::function<std::chrono::system_clock::time_point()>;

  explicit PodEventWatch(Tell tell, WallClock now = std::chrono::system_clock::now)
      : tell_(std::move(tell)), now_(std::move(now)) {}

  void OnPlaced(const Act& act) override { TellOthers(act); }
  void OnRefused(const Act& act, const Status& why) override;
  void OnUpdated(const Act& act) override { TellOthers(act); }
  void OnMoved(const Act& act, const Shift& shift) override;
  void OnReleased(const Act& act) override { TellOthers(act); }
  void OnStartRefused(const Act& act, const Status& why) override;

 private:
  // Reports containers that moved because of another one. The Events do not name it, since it may
  // belong to another tenant.
  void TellOthers(const Act& act);
  void TellMove(const Pod& pod, const Container& container, const Shift& shift,
                std::string_view why);
  void TellPod(const Pod& pod, bool warning, std::string_view reason, std::string_view message);

  const Tell tell_;
  const WallClock now_;
};

}  // namespace resmgr
