// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/resmgr/observer.h"
#include "pkg/state/state_store.h"

namespace resmgr {

// The last acts of the resource manager, refusals included; memory holds a fixed number of entries.
// Outlives resource managers, so that a change of the policy to null and back loses nothing. Loop's
// thread only.
class History final : public Observer {
 public:
  // Enough for the acts on a full node if all its pods are restarted.
  static constexpr size_t kDefaultCapacity = 1024;
  // The length at which a name, a reason or an error is cut.
  static constexpr size_t kLongestText = 1024;

  enum class Event {
    kPlaced,
    kAdopted,
    kRefused,
    kMoved,
    kReleased,
    kFailed,
    kLetThrough,
    kWritten
  };
  static constexpr size_t kEvents = 8;

  struct Asked {
    QosClass qos = QosClass::kBestEffort;
    Requirements requirements{};

    friend bool operator==(const Asked&, const Asked&) = default;
  };

  struct Entry {
    std::chrono::system_clock::time_point time{};
    Event event = Event::kPlaced;
    // "namespace/pod/name"; if several containers share CPUs and move together, the first one.
    std::string container{};
    PodSandboxId pod{};       // pod of that container
    uint32_t containers = 1;  // number of containers that moved together
    // The places after the act or, for a release, before it. Never null. Successive entries share
    // places and reasons: a ring of full copies would push other data out of the CPU caches.
    std::shared_ptr<const Place> place{};
    std::shared_ptr<const std::string> reason{};  // never null
    // The request of a refused container; null in other entries.
    std::shared_ptr<const Asked> asked{};
    // The reason of a refusal, the runtime's error, or the obstacle of a start.
    std::string error{};
  };

  using WallClock = std::function<std::chrono::system_clock::time_point()>;
  explicit History(size_t capacity = kDefaultCapacity,
                   WallClock now = std::chrono::system_clock::now);

  // The newest `most` entries, the newest one last; pointers are valid until the next act.
  std::vector<const Entry*> Last(size_t most) const;
  size_t capacity() const { return capacity_; }
  // The name of a container in the entries: "namespace/pod/name" with long parts cut, so that there
  // are always three parts.
  static std::string NameOf(const Pod& pod, std::string_view container);

  // Adds a refusal of an earlier daemon; called before the first act.
  void Restore(const Entry& refused);

  void OnPlaced(const Act& act) override;
  void OnRefused(const Act& act, const Status& why) override;
  void OnRefusedByStage(const Act& act, const Status& why) override { OnRefused(act, why); }
  void OnUpdated(const Act& act) override;
  void OnMoved(const Act& act, const Shift& shift) override;
  void OnReleased(const Act& act) override;
  void OnAdopted(std::span<const Act> acts) override;
  void OnFoundEnded(std::span<const Act> acts) override;
  void OnStartRefused(const Act& act, const Status& why) override { OnRefused(act, why); }
  void OnStartForced(const Act& act, std::string_view reason) override;
  void OnFailed(const Act& act, const Status& why) override;
  void OnWritten(const Act& act, const Status& why) override;

 private:
  // Makes a new entry, without an error, and returns it.
  Entry& Add(Event event, const Pod& pod, std::string_view container, const Place& place,
             std::string_view reason);
  // Adds an act with the place that the policy decided.
  void AddDecided(Event event, const Act& act);
  // Adds an act that failed; if one of the last entries is about the same failure, that one gets
  // the time of this try and becomes the newest.
  void AddError(Event event, const Act& act, std::string_view error);
  Entry& Next();
  Entry& Back(size_t steps);
  void AddShift(const Act& act, const Shift& shift, std::string_view reason);
  void AddOthers(const Act& act);

  const size_t capacity_;
  const WallClock now_;
  std::vector<Entry> ring_;  // grows to the capacity; then the oldest entry is written anew
  size_t next_ = 0;
  // The place of the last entry, and the reason of the last entry of each event, so that the next
  // ones can share them.
  std::shared_ptr<const Place> place_ = std::make_shared<const Place>();
  std::array<std::shared_ptr<const std::string>, kEvents> reasons_;
};

std::string_view ToString(History::Event event);  // "placed", "adopted", ...

// Saves the last refusals of the history, so that `explain` and `history` show them after a
// restart, too. A refusal is forgotten when its container is placed. It must observe after the
// history does. Loop's thread only.
class RefusalNotes final : public Observer {
 public:
  // Limit of saved refusals; the oldest ones are dropped.
  static constexpr size_t kMost = 64;

  // Puts an earlier daemon's saved refusals into the history. Both must outlive this.
  RefusalNotes(StateStore& state, History& history);

  void OnRefused(const Act& act, const Status& why) override;
  void OnRefusedByStage(const Act& act, const Status& why) override { OnRefused(act, why); }
  void OnStartRefused(const Act& act, const Status& why) override { OnRefused(act, why); }
  void OnPlaced(const Act& act) override;
  void OnUpdated(const Act& act) override { OnPlaced(act); }

 private:
  void Forget(std::list<std::string>::iterator name);

  StateStore& state_;
  const History& history_;
  std::list<std::string> names_;  // names with saved refusals, oldest first
};

}  // namespace resmgr
