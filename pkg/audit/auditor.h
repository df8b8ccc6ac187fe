// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pkg/audit/cgroup_reader.h"
#include "pkg/audit/comparison.h"
#include "pkg/config/module_configs.h"
#include "pkg/log/log.h"
#include "pkg/model/container.h"
#include "pkg/model/problem.h"
#include "pkg/model/resources.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// The findings of one audit.
struct AuditReport {
  struct Finding {
    ContainerKey key{};
    std::string container{};  // "namespace/pod/name"
    ContainerId id{};
    std::vector<Drift> drifts{};
    ResourceValues decided{};  // the decided values that were compared
    std::string unread{};      // why its cgroup could not be read; "" if it was read
    bool sent_again = false;   // the decision is being sent to the runtime again
  };
  // Containers that have drifted or could not be read; all others have the decided values.
  std::vector<Finding> findings{};
  size_t checked = 0;
  size_t drifted = 0;
  size_t unread = 0;  // containers whose cgroups could not be read; `checked` excludes them
  // Containers that were left out because a change of them was under way.
  size_t changing = 0;
  // Why the runtime's report was not compared; "" if it was.
  std::string runtime_problem{};
};

// Compares the values that running containers really have, by their cgroups and by the runtime's
// own report, with the decided ones: on demand, and every AuditConfig::interval. Another program
// may have written into a cgroup, an NRI plugin of the runtime may have moved a container, or a
// cgroup above may allow fewer CPUs; without audits, this would be noticed only when a container
// runs on the exclusive CPUs of another one. Containers with a change under way are left out, so
// that this daemon's own changes do not count as drift. Loop's thread only.
class Auditor {
 public:
  // Called after each audit with the result that Run's caller gets.
  using Told = std::function<void(const StatusOr<AuditReport>& result)>;
  using Done = std::function<void(StatusOr<AuditReport>)>;

  struct Options {
    EventLoop& loop;
    // Returns the active resource manager; nullptr if there is none.
    std::function<ResourceManager*()> manager;
    CgroupReader cgroups{};
    // Whether no other stage may have changed a container's shares, quota or period; if one may
    // have, these values are not compared.
    std::function<bool()> numbers_are_ours = [] { return true; };
    Told told = [](const StatusOr<AuditReport>&) {};
    // Containers that were not read within this time are reported as unread.
    std::chrono::milliseconds patience = std::chrono::seconds(5);
    // RunSoon: the pause before an audit, which gathers further changes, and the least time between
    // two such audits.
    std::chrono::milliseconds soon = std::chrono::milliseconds(200);
    std::chrono::milliseconds soon_again = std::chrono::seconds(5);
    // If a container has no finding for this long, and for several intervals of the periodic
    // audits, the program that wrote its cpuset counts as stopped. Older findings are not reported.
    std::chrono::milliseconds left_alone = std::chrono::minutes(5);
  };

  explicit Auditor(Options options);
  ~Auditor();
  Auditor(const Auditor&) = delete;
  Auditor& operator=(const Auditor&) = delete;

  // Sets the interval of periodic audits, and whether they repair.
  void Configure(const AuditConfig& config);

  // With `repair`, the decided values are sent again to containers that have drifted. `done` is
  // never run from within. FailedPrecondition: the null policy is active, so there is nothing to
  // compare. Unavailable: the runtime's containers are not known yet. ResourceExhausted: too many
  // audits wait.
  void Run(bool repair, Done done);
  // Requests an audit after a possible drift, if periodic audits are on. It follows after a short
  // pause, with a least time between two of them.
  void RunSoon();

  // Problems for `status`: containers whose cgroup has other CPUs or memory nodes than decided,
  // although an audit had found the decided ones there or they were sent again (another program
  // writes past the runtime), and causes outside of containers that the last audit found, which no
  // repair removes. Leaves out old findings, and causes for containers with a newer decision.
  std::vector<Problem> problems() const;
  // All other containers that had drifted at the last audit. Leaves out those to which the decision
  // was sent again for the first time, which usually repairs the drift.
  std::vector<Problem> drifted() const;
  // Findings of the last audit about this container, as sentences; "" if it has the decided values,
  // if the decision has changed since, or if the audit is long ago.
  std::string FoundOf(const ContainerId& id) const;

 private:
  // The findings of the last audit about a container.
  struct Known {
    ContainerKey key{};
    std::vector<Drift> drifts{};
    ResourceValues decided{};  // the decided values that were compared
    bool repaired = false;     // the decision was sent again for the first time
  };
  // A container whose cgroup was found with other CPUs or memory nodes.
  struct Written {
    ContainerKey key{};
    std::string container{};
    Drift last{};
    size_t writes = 0;                     // number of distinct writes, as far as audits can tell
    bool written = false;                  // the last audit of this container found such values
    bool sent_again = false;               // the decided values were sent again since
    EventLoop::Clock::time_point found{};  // when other values were last found
  };
  struct Audit;

  void RunByClock();
  void Begin();
  void ReadCgroups(const std::shared_ptr<Audit>& audit);
  void AskRuntime(const std::shared_ptr<Audit>& audit);
  void EndPart(Audit& audit);
  void End();
  void Post(void (Auditor::*step)());
  AuditReport Compare(Audit& audit) const;
  void Repair(AuditReport& report) const;
  void LogNews(const AuditReport& report);
  void NoteWritten(const Audit& audit, const AuditReport& report);
  bool IsLongAgo(EventLoop::Clock::time_point time) const;
  // The container if the finding about it still counts, else nullptr.
  const Container* StillFound(const ContainerId& id, const Known& known) const;
  bool IsWrittenAgain(const ContainerId& id) const;
  void AddWritten(std::vector<Problem>& problems) const;
  void AddOutsideCauses(std::vector<Problem>& problems) const;
  void Answer(StatusOr<AuditReport> result);

  const Options options_;
  Logger& log_;
  AuditConfig config_{.interval = std::chrono::milliseconds(0)};
  EventLoop::HandlePtr timer_;
  EventLoop::HandlePtr soon_timer_;
  EventLoop::Clock::time_point soon_ran_{};
  struct Job {
    bool repair;
    Done done;
  };
  std::deque<Job> jobs_;  // the first one is under way
  std::shared_ptr<Audit> audit_;
  EventLoop::HandlePtr deadline_;
  OffLoop reading_;
  // By ids: each resource manager counts its keys anew, and another one may have become active.
  std::map<ContainerId, Known> known_;
  EventLoop::Clock::time_point known_since_{};
  std::map<ContainerId, Written> written_;
  Lifetime lifetime_;  // for callbacks that run later
};

}  // namespace resmgr
