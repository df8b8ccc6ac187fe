// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pkg/classes/class_context.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/class_plan.h"
#include "pkg/classes/class_stage.h"
#include "pkg/classes/class_worker.h"
#include "pkg/config/classes_config.h"
#include "pkg/log/log.h"
#include "pkg/model/problem.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/resmgr/observer.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// Applies the classes of containers (docs/classes.md). The kinds (class_kind.h) plan the runtime's
// part at creation and the values of the host's files. HostClasses restores the former values of
// these files when a container or its CPUs are released, when the configuration no longer wants the
// values, and if an earlier process left values behind. After each decision, and once a minute, a
// thread away from the loop compares the files with the wanted values. Without classes and values
// to restore it does nothing. Loop's thread only.
class HostClasses final : public Observer, private ClassStage::Decider {
 public:
  struct Options {
    EventLoop& loop;
    Pipeline& pipeline;                    // gets a stage while containers may have classes
    std::string host_root = "/";           // where sys and proc of the host are
    std::string directory{};               // for the journal; this daemon's alone
    std::function<CreationWays()> door{};  // see ClassContext, as the machine
    const Machine* machine = nullptr;
    std::function<const ResourceManager*()> manager{};  // nullptr: no policy
    std::chrono::milliseconds period = std::chrono::minutes(1);
    // The pause before failed work is tried again.
    std::chrono::milliseconds retry = std::chrono::seconds(5);
    // Work that has not ended by then hangs.
    std::chrono::milliseconds patience = std::chrono::seconds(5);
    // The longest time that a start waits for work.
    std::chrono::milliseconds start_patience = std::chrono::seconds(1);
  };

  // The objects in the options outlive this one; the pipeline's calls end before it.
  explicit HostClasses(Options options);
  ~HostClasses() override;
  HostClasses(const HostClasses&) = delete;
  HostClasses& operator=(const HostClasses&) = delete;

  // To be called with each configuration that comes into force, even if its classes are unchanged.
  void Configure(const ClassesConfig& config);

  // The outcome of the last work.
  const ClassReport& report() const { return report_; }
  // Whether the report is about this configuration: false before the runtime's first list, and
  // right after a change of the configuration.
  bool known() const { return !config_.any() || (first_ != 0 && ended_ >= first_); }
  // The annotations of the container's pod that have no effect, and why; usually empty.
  std::string NoteOf(const std::string& id) const;
  // Whether all decided work is done, and no file of the host has a value of this daemon, except
  // those of CPUs that are offline.
  bool given_back() const;
  std::vector<Problem> problems() const;

  struct Audited {
    HostDifference difference{};
    bool repaired = false;
  };
  // Runs `done`, possibly from within, with the files that differ from their wanted values. With
  // `repair`, the wanted values are written first. Unavailable: a file hangs.
  void Audit(bool repair, std::function<void(StatusOr<std::vector<Audited>>)> done);

  void OnPlaced(const Act& act) override;
  void OnUpdated(const Act&) override { Note(); }
  void OnMoved(const Act&, const Shift&) override { Note(); }
  void OnReleased(const Act&) override { Note(); }
  void OnAdopted(std::span<const Act>) override { Note(); }
  void OnFoundEnded(std::span<const Act>) override { Note(); }
  void OnInForce(const Act&, const Place&) override { Note(); }
  void OnRemoved(const Act&) override { Note(); }
  void OnListed(const Snapshot&) override { Note(); }

 private:
  using Clock = std::chrono::system_clock;
  struct Inactive {
    std::string reason;
    Clock::time_point since;
  };

  void Note() {
    if (on_ && !scheduled_) Schedule();
  }
  void Schedule();
  void Later(std::chrono::milliseconds delay);
  void Begin(bool again);
  void Work();
  using Differences = std::function<void(StatusOr<std::vector<HostDifference>>)>;
  struct Comparison {
    Differences done;
    EventLoop::HandlePtr timer;

    void End(StatusOr<std::vector<HostDifference>> differences) {
      const EventLoop::HandlePtr over = std::move(timer);
      if (const Differences once = std::exchange(done, nullptr)) once(std::move(differences));
    }
  };

  void Compare(Differences done);
  void NextComparison();
  void End(uint64_t work, ClassReport report);
  void Hang();
  // Whether the set of inactive classes has changed.
  bool NoteInactive();
  // The classes of a container, with the inputs that they depend on.
  struct Choice {
    ClassNames of_pool{};
    int64_t memory_limit = 0;
    bool own_cpus = false;
    std::string pool{};
    CreationWays ways{};
    ChosenClasses chosen{};
    // Number of the last look that found the container; 0: none did since the configuration.
    uint64_t seen = 0;
    // As ClassSubject::memory_policy. Stays when other classes are chosen.
    std::optional<std::string> memory_policy{};
    // As ClassSubject::requested_memory. Stays, too.
    std::optional<StringMap> requested_memory{};

    bool IsFor(const ClassedContainer& container, const CreationWays& now) const;
  };

  const Pod* FindPod(const PodSandboxId& id) override;
  StatusOr<Adjustment> AtCreation(const Pod& pod, const CreateRequest& create,
                                  const RequestedFiles& files) override;
  void NoteRequested(const StringMap& files);
  bool HoldStart(const ContainerId& id, std::function<void()> go) override;
  bool HoldUpdate(const StageCall& update, const ContainerId& id, int64_t quota,
                  std::function<void()> go) override;
  void EndUpdate(const StageCall& update) override;
  void NoteEnd() override { Note(); }
  // Runs `go` when the work that was begun last has ended. False: too many wait already.
  bool Hold(std::function<void()> go);
  // The lowest quota of the container's pending updates; 0: none.
  int64_t ComingQuotaOf(std::string_view id) const;
  void LetGo();
  std::vector<ClassSubject> Subjects();
  std::vector<ClassPool> Pools() const;
  static Choice InputsOf(const ClassedContainer& container, const CreationWays& ways);
  Choice& ChoiceOf(const Pod& pod, const Container& container, const ClassNames& of_pool,
                   const CreationWays& ways);

  const Options options_;
  Logger& log_;
  const bool unified_;  // the node has cgroup v2
  const ClassContext context_;
  const std::vector<std::unique_ptr<ClassKind>> kinds_ = MakeClassKinds(context_);
  ClassStage stage_;
  bool in_pipeline_ = false;
  ClassesConfig config_;
  bool on_ = true;      // whether there may be work
  bool wrote_ = false;  // whether this process may have written a file
  bool scheduled_ = false;
  EventLoop::HandlePtr next_;
  EventLoop::HandlePtr deadline_;
  std::optional<Clock::time_point> hangs_since_{};
  std::map<ContainerKey, Choice> choices_;
  uint64_t looks_ = 1;  // number of looks at all containers, plus 1
  std::map<std::string, std::string, std::less<>> notes_;  // by container id
  std::vector<ClassSubject> subjects_;                     // of the last work
  std::vector<ClassPool> pools_;                           // of the last work
  // Starts and updates that wait for the work with this number.
  std::vector<std::pair<uint64_t, std::function<void()>>> held_;
  // The quotas of updates under way; a container may have several.
  struct ComingQuota {
    std::string id;
    int64_t quota = 0;  // 0: not lower than the present one
  };
  std::map<const StageCall*, ComingQuota> coming_quotas_;
  std::vector<ContainerKey> creating_;  // placed containers that did not exist at the last look
  std::vector<std::shared_ptr<Comparison>> comparisons_;  // comparisons that have not begun
  std::shared_ptr<Comparison> comparing_;
  uint64_t begun_ = 0;  // number of the last work that was begun
  uint64_t ended_ = 0;  // the number of the last work that ended
  uint64_t first_ = 0;  // the first work with this configuration; 0: none yet
  ClassReport report_;
  std::map<std::pair<std::string, std::string>, Inactive> inactive_;
  std::optional<Clock::time_point> failing_since_{};  // when the journal or restoring began to fail
  // Shared with the thread's work, which may outlive this object.
  const std::shared_ptr<ClassWorker> worker_;
  Lifetime lifetime_;
  OffLoop thread_;
};

}  // namespace resmgr
