// SPDX-License-Identifier: Apache-2.0
// The brain's part in starts.
#include <algorithm>
#include <utility>

#include "pkg/resmgr/resource_manager_impl.h"

namespace resmgr {
namespace {

// Of a start that is let through: names, CPU lists and an answer of the runtime's.
constexpr size_t kLongestReason = 1024;

// A start that waits at the gate, or before that for its container to become known.
class Token : public ResourceManager::StartWait {
 public:
  using Slot = std::unique_ptr<StartGate::Wait>;

  explicit Token(Slot wait = nullptr) : wait_(std::make_shared<Slot>(std::move(wait))) {}
  // Expires with the token.
  std::weak_ptr<Slot> wait() const { return wait_; }

 private:
  std::shared_ptr<Slot> wait_;
};

}  // namespace

std::unique_ptr<ResourceManager::StartWait> ResourceManager::Impl::AdmitStart(
    const ContainerId& id, std::function<void(Status)> go) {
  const ContainerRecord* const record = store_.Resolve(id);
  if (record != nullptr) {
    std::unique_ptr<StartGate::Wait> wait = AdmitKnown(record->container.key, std::move(go));
    return wait == nullptr ? nullptr : std::make_unique<Token>(std::move(wait));
  }
  // Created while nobody looked: it is to be taken over first.
  auto token = std::make_unique<Token>();
  synchronizer_.ListNow([this, id, go = std::move(go), wait = token->wait()](const Status& status) {
    const std::shared_ptr<Token::Slot> slot = wait.lock();
    if (slot == nullptr) return;
    const ContainerRecord* const found = store_.Resolve(id);
    if (found != nullptr) {
      *slot = AdmitKnown(found->container.key, go);
    } else {
      // What the runtime does not list either, it refuses.
      go(status);
    }
  });
  return token;
}

std::unique_ptr<StartGate::Wait> ResourceManager::Impl::AdmitKnown(ContainerKey key,
                                                                   std::function<void(Status)> go) {
  if (store_.Find(key)->Unpinned() && AnyExclusive()) WarnUnpinned(key);
  std::unique_ptr<StartGate::Wait> wait =
      gate_.Admit(key, [this, key, go = std::move(go)](const Status& status) {
        const ContainerRecord* const record = store_.Find(key);
        if (!status.ok()) {
          Count(Metrics::Event::kStartRefused);
        } else if (record != nullptr) {
          state_writer_.BeginCall(StateWriter::Call::kStart, record->container.id);
        }
        go(status.ok() || record == nullptr ? status : AsRefusal(*record, status));
      });
  if (wait != nullptr) Count(Metrics::Event::kStartWaited);
  return wait;
}

// Once for each container: the policy's rule lets it run there.
void ResourceManager::Impl::WarnUnpinned(ContainerKey key) {
  ContainerRecord& record = *store_.Find(key);
  if (std::exchange(record.unpinned_warned, true)) return;
  const std::string& reason = record.container.placement.reason;
  log_.Warn("container {} is not pinned, so it may run on exclusive CPUs of other containers: {}",
            LogName(record), reason.empty() ? "the policy leaves it alone" : Printable(reason));
}

bool ResourceManager::Impl::AnyExclusive() const {
  const auto& all = store_.containers();
  return std::any_of(all.begin(), all.end(), [](const auto& entry) {
    return !entry.second.container.placement.exclusive.empty();
  });
}

void ResourceManager::Impl::OnStartForced(ContainerKey key, const std::string& reason) {
  Count(Metrics::Event::kStartLetThrough);
  pusher_.MarkOverlap(key);
  log_.Warn("container {} starts all the same, as StartFailurePolicy says: {}",
            LogName(*store_.Find(key)), Printable(reason, kLongestReason));
}

void ResourceManager::Impl::EndStart(const ContainerId& id, StartOutcome outcome) {
  ContainerRecord* const record = store_.Resolve(id);
  if (record == nullptr) {
    if (outcome != StartOutcome::kFailed) synchronizer_.ResyncSoon();
    return;
  }
  const ContainerKey key = record->container.key;
  store_.Touch(*record);
  if (record->starts > 0) --record->starts;
  if (record->container.state == ContainerState::kCreated) {
    if (outcome == StartOutcome::kUnclear) unresolved_starts_.Add(key);
    if (outcome == StartOutcome::kStarted) {
      record->container.state = ContainerState::kRunning;
      record->started_at = clock_.Now();
    }
  }
  // It was taken for ended.
  if (outcome == StartOutcome::kStarted && record->container.state == ContainerState::kExited) {
    synchronizer_.ResyncSoon();
  }
  // The runtime may have refused this start because it is busy with another one.
  if (!record->BeingStarted()) {
    record->unresolved_start = UnresolvedStart::kNone;
    state_writer_.EndCall(StateWriter::Call::kStart, record->container.id);
  }
  unresolved_starts_.Examine();
  Push({key});
}

// After a list. Adds those to `changed` that may be updated again.
void ResourceManager::Impl::FollowStarts(const Adoption& adoption, ContainerKeys& changed) {
  for (const auto& [key, record] : store_.containers()) {
    if (!record.BeingStarted()) {
      state_writer_.EndCall(StateWriter::Call::kStart, record.container.id);
    } else if (record.unresolved_start != UnresolvedStart::kNone &&
               !unresolved_starts_.Contains(key)) {
      state_writer_.BeginCall(StateWriter::Call::kStart, record.container.id);
      unresolved_starts_.Add(key);
    }
  }
  unresolved_starts_.Examine();
  changed.insert(changed.end(), adoption.start_known.begin(), adoption.start_known.end());
}

// The runtime is not busy with it any more.
void ResourceManager::Impl::OnStartExpired(ContainerKey key) {
  const ContainerRecord& record = *store_.Find(key);
  if (record.BeingStarted()) return;
  log_.Warn("container {} was not started by a start that nobody waits for any more",
            LogName(record));
  state_writer_.EndCall(StateWriter::Call::kStart, record.container.id);
  Push({key});
}

}  // namespace resmgr
