// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/resmgr/runtime_client.h"

namespace resmgr::test {

// The cpuset that an adjustment carries, "" for none.
std::string CpuList(const ResourceValues& adjustment);
// The entry in `history` of an update that has only these CPUs.
std::string WithCpus(const ContainerId& id, std::string_view cpus);

// A runtime in memory that answers when the test says so: calls wait in the order in which they
// came. The test may read and set everything that it reports. The values in force for a running
// container may differ, as with containerd: an update of a container that is being started changes
// the notes only, and one that fails may leave either.
class FakeRuntimeClient : public RuntimeClient {
 public:
  struct Update {
    ContainerId id;
    ResourceValues adjustment;
    std::function<void(Status)> done;
  };

  void UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                       std::function<void(Status)> done) override;
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override;
  bool StartsExited() const override { return starts_exited; }
  bool Renames() const override { return renames; }

  bool ListsTellNews() const override { return lists_tell_news; }

  bool lists_tell_news = true;
  // The pods and containers that exist.
  RuntimeInventory held;
  RuntimeContainer* Find(const ContainerId& id);
  void Remove(const ContainerId& id);
  // The cpuset in force, "" for none.
  std::string CpusOf(const ContainerId& id);
  // Puts an adjustment in force, as an accepted request does.
  void Apply(const ContainerId& id, const ResourceValues& adjustment);
  // One of the two only, of a running container.
  enum class Part { kReport, kForce };
  void ApplyPart(const ContainerId& id, const ResourceValues& adjustment, Part part);
  // Reports contain the values in force, until the next such case.
  void ReportTruth();

  // Begins a start with the noted values; the container runs.
  void BeginStart(const ContainerId& id);
  void EndStart(const ContainerId& id);
  // How often that was done.
  uint64_t Applied(const ContainerId& id) const;

  // Whether exited containers may be started, as at dockerd.
  bool starts_exited = false;
  bool renames = false;

  // Run when an update comes.
  std::function<void()> on_update;
  // Updates that wait for an answer.
  std::vector<Update> updates;
  // Answers the update at `index`. OK puts it in force first, or becomes NotFound without such a
  // container.
  void Answer(size_t index, Status status = OkStatus());
  // Answers until no update is left, including those that come meanwhile; returns their number.
  size_t AnswerAll();
  // Drops them without an answer, as a lost connection does.
  void DropAll();

  // Lists that wait for an answer.
  struct List {
    Known known;
    std::function<void(StatusOr<RuntimeInventory>)> done;
  };
  std::vector<List> lists;
  // How many statuses the lists that were answered have cost.
  size_t statuses = 0;
  void AnswerList();
  // Answers lists until none is asked for.
  void AnswerLists() {
    while (!lists.empty())
      AnswerList();
  }
  // Lists have only the existence of pods and containers.
  bool unclear = false;
  void FailList(const Status& status);

  // Every update that came, "ID cpus=0-3 quota=-1".
  std::vector<std::string> history;

 private:
  std::map<ContainerId, uint64_t> applied_;
  std::map<ContainerId, std::string> starts_;    // with these CPUs
  std::map<ContainerId, std::string> in_force_;  // if not as reported
};

// Removes the element at `index`, which must exist, and returns it.
template <typename T>
T TakeAt(std::vector<T>& from, size_t index) {
  const auto at = from.begin() + static_cast<std::ptrdiff_t>(index);
  T taken = std::move(*at);
  from.erase(at);
  return taken;
}

}  // namespace resmgr::test
