// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/model/problem.h"
#include "pkg/usage/memory_trouble.h"
#include "pkg/usage/usage_figures.h"

namespace resmgr {

// Finds lasting problems in a sequence of figures, with advice for each: containers with exclusive
// CPUs that are throttled by a quota, or whose CPUs are used by interrupts or tasks of others; a
// pool under pressure while another one has room; a container that waits in a pool with fewer CPUs
// than its limit; memory on other nodes than decided; a container that memory.high slows down, or
// whose processes were killed for want of memory. Idle exclusive CPUs are reported as advice and
// not as a problem: an idle database is in order. A single sample never makes a problem, except for
// a killed process. Thread-compatible.
class UsageProblems {
 public:
  struct Limits {
    double throttled_percent = 5;   // percent of the periods
    double idle_percent = 5;        // busy less than this, of a container's exclusive CPUs
    double pressure_percent = 20;   // of the time, in which some task waits
    double interrupt_percent = 10;  // of one of a container's exclusive CPUs
    double others_used = 0.25;      // exclusive CPUs of a container that others use,
    double others_part = 0.1;       // and their part of all: a node's own programs run on all CPUs
    double room_percent = 50;       // a pool has room if at most this part of its CPUs is used
    double room_pressure_percent = 5;
    double remote_percent = 20;
    int64_t remote_bytes = int64_t{64} << 20;
    // Pressure (PSI, if reported) that makes memory.high a problem: dropping file caches is
    // harmless.
    double memory_pressure_percent = 1;
    std::chrono::seconds lasts{30};  // for throttling and remote memory
    std::chrono::seconds pressure_lasts{60};
    std::chrono::seconds idle_lasts{3600};
  };
  // Limit of problems of each kind that name their object; one more problem counts the others.
  static constexpr size_t kMostNamed = 5;
  // Limit of tracked containers with killed processes.
  static constexpr ptrdiff_t kMostKilled = 256;
  // Limit of ended problems that are kept.
  static constexpr size_t kMostEffects = 16;

  // A reported problem that has ended, with the figures before and after, whether or not the advice
  // was followed.
  struct Effect {
    std::string kind{};
    std::string id{};  // the container's id; a name for pools and killed processes
    std::chrono::system_clock::time_point since{};
    std::chrono::system_clock::time_point ended{};
    double before = 0;  // percent or times, in the last report
    double after = 0;   // in the present figures
    std::string message{};
  };

  UsageProblems() : UsageProblems(Limits()) {}
  explicit UsageProblems(Limits limits) : limits_(limits) {}

  // Returns the number of reported problems that this sample has ended: they are the last ones in
  // effects().
  size_t Observe(const UsageFigures& figures);
  // Called when sampling stops: the next sample says nothing about the time between. Processes that
  // were killed in the last hour are reported again with the next sample.
  void Forget();

  std::vector<Problem> List() const;
  // A sentence of advice for the container; "" if there is none.
  std::string AdviceOf(const std::string& id) const;
  // The newest is the last one.
  const std::deque<Effect>& effects() const { return effects_; }

 private:
  enum class Kind {
    kThrottled,
    kIdle,
    kPressure,
    kRemote,
    kInterrupts,
    kOthers,
    kSmallPool,
    kMemoryHigh,
    kKilled,
  };
  // A kind of problem, with the id of the container or the name of the pool. Killed processes have
  // the container's name, since its id may change afterwards, or the pod's name.
  using Key = std::pair<Kind, std::string>;
  struct Known {
    std::chrono::system_clock::time_point since{};
    std::chrono::steady_clock::time_point begun{};
    Problem problem{};
    double percent = 0;  // the excessive value; a number of times for memory.high, kills
    KillsOfAnHour kills{};
    std::string cause{};  // the cause of the kills
    bool lasts = false;   // lasts long enough to be reported
    bool seen = false;    // in the present figures
  };

  void ObserveContainer(const UsageFigures& figures, const ContainerFigures& container);
  void ObserveExclusive(const UsageFigures& figures, const ContainerFigures& container);
  void ObserveShared(const UsageFigures& figures, const ContainerFigures& container);
  void ObserveMemory(const UsageFigures& figures, const ContainerFigures& container);
  void NoteKills(const UsageFigures& figures, const std::string& name, uint64_t count,
                 Problem problem);
  void CountKills(const UsageFigures& figures);
  void ObservePools(const UsageFigures& figures);
  Known& Note(const UsageFigures& figures, Key key, std::chrono::seconds lasts, double percent,
              Problem problem);
  bool End(const UsageFigures& figures, const Key& key, const Known& known);
  // The figure that a problem is about, between two parts of an effect's message.
  struct AboutNow {
    double percent = 0;
    std::string begin{};
    std::string_view unit{};
  };
  static AboutNow Now(const UsageFigures& figures, const ContainerFigures& container, Kind kind);

  const Limits limits_;
  std::map<Key, Known> known_;
  std::deque<Effect> effects_;
};

}  // namespace resmgr
