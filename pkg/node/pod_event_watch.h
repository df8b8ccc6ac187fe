// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/node/pod_event.h"
#include "pkg/resmgr/observer.h"

namespace resmgr {

// Reasons of Events.
inline constexpr std::string_view kRefusedReason = "CPURefused";
inline constexpr std::string_view kMovedReason = "CPUsMoved";
inline constexpr std::string_view kLostReason = "ExclusiveCpusLost";

// Makes Events of pods from the resource manager's acts:
//   CPURefused         Warning: a container or an update of it was refused, or a start
//   CPUsMoved          Normal: a container got other exclusive CPUs without having asked for it
//   ExclusiveCpusLost  Warning: it got fewer of them
// Moves of containers that share CPUs make none, since each grant of exclusive CPUs moves all of
// these; nor do changes that the kubelet requested. Pods without name, namespace or UID, which no
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
  // Reports containers that move because of the act's own container, which is not named, since it
  // may belong to another tenant.
  void TellOthers(const Act& act);
  void TellMove(const Pod& pod, const Container& container, const Shift& shift,
                std::string_view why);
  void TellPod(const Pod& pod, bool warning, std::string_view reason, std::string_view message);

  const Tell tell_;
  const WallClock now_;
};

}  // namespace resmgr
