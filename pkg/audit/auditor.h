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
    std::string unread{};      // why its cgroup could not be read; "" where it was
    bool sent_again = false;   // the decision is on its way to the runtime again
  };
  // Containers that have drifted, or could not be looked at; all others are as decided.
  std::vector<Finding> findings{};
  size_t checked = 0;
  size_t drifted = 0;
  size_t unread = 0;  // their cgroups could not be read, so they are not among those checked
  // Left out, since a change of them was under way.
  size_t changing = 0;
  // The reason why the runtime's report was not compared; "" where it was.
  std::string runtime_problem{};
};

// Compares the values that running containers really have, by their cgroups and by the runtime's
// own report, with the decided ones: on demand, and every AuditConfig::interval. Another program
// may have written into a cgroup, an NRI plugin of the runtime may have moved a container, or a
// cgroup above may allow fewer CPUs; without audits this would be noticed only when a container is
// on CPUs that another one has exclusively. A container with a change under way is left out, so
// that no change of ours is taken for drift. Loop's thread only.
class Auditor {
 public:
  // Called after each audit; nullptr: it failed.
  using Told = std::function<void(const AuditReport* report)>;
  using Done = std::function<void(StatusOr<AuditReport>)>;

  struct Options {
    EventLoop& loop;
    // The resource manager that is active, nullptr where none is.
    std::function<ResourceManager*()> manager;
    CgroupReader cgroups{};
    // Whether no other stage may have changed a container's shares, quota or period: only then
    // these are compared.
    std::function<bool()> numbers_are_ours = [] { return true; };
    Told told = [](const AuditReport*) {};
    // Containers without an answer by then are left out of the report.
    std::chrono::milliseconds patience = std::chrono::seconds(5);
    // RunSoon: the pause before an audit, in which more may change, and the least time between two.
    std::chrono::milliseconds soon = std::chrono::milliseconds(200);
    std::chrono::milliseconds soon_again = std::chrono::seconds(5);
    // A container without a finding for this long, and for several intervals of the periodic
    // audits, counts as no longer changed by other programs. Older findings are not reported.
    std::chrono::milliseconds left_alone = std::chrono::minutes(5);
  };

  explicit Auditor(Options options);
  ~Auditor();
  Auditor(const Auditor&) = delete;
  Auditor& operator=(const Auditor&) = delete;

  // Sets when it audits by itself.
  void Configure(const AuditConfig& config);

  // With `repair`, the decided values are sent again to containers that have drifted. `done` is
  // never run from within. FailedPrecondition: the null policy is active. Unavailable: the
  // runtime's containers are not known yet. ResourceExhausted: too many audits wait.
  void Run(bool repair, Done done);
  // Something may have drifted: if audits by the clock are on, one follows after a short pause,
  // with a least time between two of these.
  void RunSoon();

  // Problems for `status`. Containers whose cgroup has other CPUs or memory nodes than decided,
  // after an audit had found the decided ones or they were sent again: another program writes them,
  // past the runtime. Also causes outside of containers that the last audit found, which no repair
  // removes. Leaves out old findings, and causes for containers with a newer decision.
  std::vector<Problem> problems() const;
  // The other containers that had drifted at the last audit. Leaves out those to which the decision
  // was sent again for the first time, which usually repairs them.
  std::vector<Problem> drifted() const;
  // Findings of the last audit about this container: sentences, "" where it is as decided, where
  // something else was decided since then, and where the audit is long ago.
  std::string FoundOf(const ContainerId& id) const;

 private:
  // The findings of the last audit about a container.
  struct Known {
    ContainerKey key{};
    std::vector<Drift> drifts{};
    ResourceValues decided{};  // the decided values that were compared
    bool repaired = false;     // the decision was sent again, for the first time
  };
  // A container whose cgroup was found with other CPUs or memory nodes.
  struct Written {
    ContainerKey key{};
    std::string container{};
    Drift last{};
    size_t writes = 0;                     // number of writes that are certainly distinct
    bool written = false;                  // the last audit of this container found such values
    bool sent_again = false;               // since it was found
    EventLoop::Clock::time_point found{};  // last
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
