// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pkg/policy/registry.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "pkg/sys/clock.h"
#include "test/support/seed.h"

namespace resmgr::test {

// A random life of a node: the brain with a policy between a kubelet that creates, starts, resizes,
// stops and removes at will, and a runtime that answers late, in any order, with errors, or not at
// all. The same seed gives the same life.
class World : Draws {
 public:
  struct Configuration {
    PolicyFactory factory;
    std::string section;  // the policy's, as YAML
    CpuSet available;
    CpuSet reserved;
  };
  // A configuration that a policy may have.
  struct Choice {
    PolicyFactory factory;
    std::vector<std::string> sections;
  };
  struct Setup {
    Machine machine;
    Configuration configuration;
    // The configuration changes among these at times.
    std::vector<Choice> choices;
    // The daemon remembers over restarts. Now and then its disk stops taking part.
    bool keeps_state = false;
    // CPUs go offline and come back at times.
    bool cpus_go_offline = false;
  };
  World(const Setup& setup, uint64_t seed);

  // One event.
  void Step();
  // Answers everything until all decisions are in force and no start is cold any more.
  void Settle();
  // Everything ends and is removed.
  void End();

  // Checks the rules that hold after every event; adds test failures.
  void Check();
  // Checks the rules that hold once everything has settled.
  void CheckSettled();
  // After that: a restart changes no container.
  void CheckRestartMovesNobody();

  // Every update that the runtime was asked for, in order.
  const std::vector<std::string>& history() const { return node_.runtime.history; }
  size_t started() const { return started_; }
  // The last events and their results, for a failure's message.
  std::string Journal();

 private:
  struct Sandbox {
    PodSandboxId id{};
    QosClass qos = QosClass::kBestEffort;
  };
  struct Creation {
    CreateRequest request;
    Admission admission;
  };
  struct Resize {
    ContainerId id;
    LinuxResources changes;
    Admission admission;
    bool applied = false;

    ResourceValues Carried() const;
  };
  struct Start {
    ContainerId id;
    std::optional<Status> decided;
    CpuSet exclusive;  // its exclusive CPUs by that decision
    CpuSet begun_on;   // CPUs that the runtime read then, whatever it notes later
    std::unique_ptr<StartWait> wait;
  };

  int64_t SomeRequest();
  // A container in that state according to the runtime; nullptr when there is none.
  RuntimeContainer* SomeContainer(ContainerState state);

  void Act();
  void Note(std::string event);
  // Describes every container, as decided and as in force.
  std::string Describe();
  void AddSandbox();
  void BeginCreation();
  void BeginAttempt();
  void Admit(const CreateRequest& request);
  void EndCreation(size_t index, bool success);
  bool SandboxLives(const Creation& creation) const;
  // The daemon no longer waits for the runtime's answer.
  void AbandonCreation(const Creation& creation);
  void EndAbandonedCreation(size_t index);
  void BeginStart();
  void EndStart(size_t index);
  void WithdrawStart();
  // Likewise.
  void AbandonStart(const Start& start);
  void EndAbandonedStart(size_t index);
  // Applies an update whose answer is lost.
  void ApplySomehow(const ContainerId& id, const ResourceValues& adjustment);
  void BeginResize();
  void EndResize(size_t index);
  void ApplyResize(Resize& resize);
  // The id in a client's call.
  ContainerId AsCalled(const ContainerId& id);
  void StopSome();
  void RemoveSome();
  void RemoveSandbox(size_t index);
  void CrashSome();
  void ChangeConfiguration();
  Configuration SomeConfiguration();
  // The configuration with the CPUs that the daemon knows to be online.
  Configuration Effective(Configuration configuration) const;
  void ChangeOnline();
  void TellOffline();
  void CheckNoOtherLost(const std::map<ContainerKey, CpuSet>& before, const CpuSet& gone);
  std::map<ContainerKey, CpuSet> ExclusiveCpus();
  // Starts the daemon anew on the CPUs that are online.
  void RestartNode();
  StatusOr<std::unique_ptr<Policy>> MakePolicy(const Configuration& configuration) const;
  // The containers that may keep their exclusive CPUs under another configuration: they can still
  // be granted, and it would get as many if it were the only one.
  std::map<ContainerKey, CpuSet> Rightful(const Configuration& wanted);
  int ExclusiveOnEmptyNode(const Configuration& configuration, const Pod& pod,
                           const Container& container) const;
  void AnswerSome();
  void LoseConnection();
  void RestartDaemon();
  // Runs posted tasks and timers until the condition holds; false if it never does.
  bool RunUntil(const std::function<bool()>& condition);
  // True if the decision is in force for every container.
  bool AllInForce();
  void NotePools();
  // The disk may have heard of another pool of a sharing container as the last one.
  bool HasUnsavedPools() const;
  // A restart may move a container: the runtime cannot report everything.
  bool DependsOnMemory(const Container& container);
  void AnswerLists();
  // The exclusive CPUs of containers that have no other CPUs, for which these are in force and
  // answered: a kill must not change them.
  std::map<ContainerId, CpuSet> Promised();
  // A running container, with its values in force.
  struct Running {
    ContainerId id;
    CpuSet in_force;
    CpuSet placed;     // as decided
    CpuSet exclusive;  // likewise
  };
  CpuSet InForce(const RuntimeContainer& container);
  std::vector<Running> RunningContainers();
  // No other container runs on its exclusive CPUs, nor will when updates under way take effect.
  bool Undisputed(const Running& one, const CpuSet& several);
  void TrackOwners(const std::vector<Running>& running);
  void CheckDecisions();
  void CheckRunning();

  const Setup setup_;
  const bool reconfigures_;  // its configuration changes at times
  bool reconfigured_ = false;
  bool unsaved_moves_ = false;  // the disk took no part in a change of the configuration
  // The pools that each sharing container was in since the disk stopped.
  std::map<ContainerId, std::set<std::string>> pools_;
  const Machine machine_;
  CpuSet off_;                      // CPUs that are offline
  CpuSet told_;                     // CPUs that the daemon knew
  std::list<Machine> machines_;     // that daemons found
  const Machine* found_ = nullptr;  // by the present one
  Configuration configured_;
  const bool keeps_state_;
  CrashingFileSystem disk_;
  StoppingFileSystem files_;
  ManualClock clock_;   // for Policy::LookAgain
  ManualClock timers_;  // for all other waits: the same seed gives the same life
  TestNode node_;
  std::vector<Sandbox> sandboxes_;
  std::vector<Creation> creations_;
  std::vector<Creation> abandoned_creations_;  // they take effect yet
  std::vector<std::unique_ptr<Start>> starts_;
  std::vector<ContainerId> abandoned_starts_;
  // Created containers that the brain must treat as running, with the CPUs on which such a start
  // may have begun beside the reported ones.
  std::map<ContainerId, CpuSet> may_start_;
  std::vector<Resize> resizes_;
  size_t started_ = 0;
  // Containers that run alone on their CPUs, from the start or since the others have left.
  struct Owner {
    CpuSet cpus;
    uint64_t applied = 0;  // how often the runtime changed it until the last decision for ownership
  };
  std::map<ContainerId, Owner> owned_;
  std::deque<std::string> journal_;
  size_t noted_updates_ = 0;
  int names_ = 0;
};

}  // namespace resmgr::test
