// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "pkg/log/log.h"
#include "pkg/resmgr/observer.h"

namespace resmgr {

// One line for each act:
//   placed default/dsp/main: CPU 1, exclusive (static); moved 2 shared containers 0-1 -> 0
// Refusals and failures are warnings, what is carried out at the runtime is for debugging only, and
// everything else is information; with debug messages on, a placed container's candidates follow.
// News of more than 20 containers in one list, as at the start on a full node, are one line
// with their sum, and a line each for debugging only.
// Nothing is formatted for a level that is off.
class LogObserver final : public Observer {
 public:
  explicit LogObserver(Logger& log) : log_(log) {}

  void OnPlaced(const Act& act) override;
  void OnRefused(const Act& act, const Status& why) override;
  void OnUpdated(const Act& act) override;
  void OnMoved(const Act& act, const Shift& shift) override;
  void OnReleased(const Act& act) override;
  void OnAdopted(std::span<const Act> acts) override;
  void OnFoundEnded(std::span<const Act> acts) override;
  void OnStartForced(const Act& act, std::string_view reason) override;
  void OnPushed(const Act& act) override;
  void OnFailed(const Act& act, const Status& why) override;
  void OnWritten(const Act& act, const Status& why) override;
  void OnRecovered(const Act& act) override;
  void OnRemoved(const Act& act) override;

 private:
  void LogCandidates(const Act& act);
  void LogNotUpdated(const Act& act, const Status& why);
  // One act, as "WHATns/pod/main: CPU 1, exclusive (WHY)".
  void LogFound(LogLevel level, std::string_view what, const Act& act, const Place& place,
                std::string_view why);
  // An empty line, in the memory of the last one.
  fmt::memory_buffer& Begin();
  // "WHATns/pod/main: "
  fmt::memory_buffer& Begin(std::string_view what, const Act& act);

  // Most containers that share CPUs are placed where the last one was.
  const std::string& TextOf(const Place& place);

  Logger& log_;
  fmt::memory_buffer line_;
  Place place_;
  std::string text_of_place_;
  std::map<ContainerKey, Status> failed_;  // whose last update failed, and why
};

// "CPU 1, exclusive", "CPUs 0-3, shared, memory node 0", "CPUs 1-7, of which 1,5 are exclusive",
// "any CPU".
std::string Describe(const Place& place);

}  // namespace resmgr
