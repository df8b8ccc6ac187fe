// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/update_queue.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "pkg/base/call_end.h"
#include "pkg/base/wire.h"
#include "pkg/log/log.h"
#include "pkg/nri/convert.h"
#include "pkg/nri/plugin_connection.h"

namespace resmgr::nri {
namespace {

// The first NRI version that carries out updates without holding its lock.
constexpr ApiVersion kSafe{.major = 0, .minor = 12, .patch = 1};
constexpr std::chrono::milliseconds kAtOnce{0};
// A starting runtime serves its CRI slightly later than its NRI.
constexpr std::chrono::seconds kCriPatience{2};
constexpr std::chrono::milliseconds kCriPause{100};

// Whether the runtime may show an update with these values as `shown`: plugins that are asked
// earlier can change and add other values than CPUs, but cannot take any out.
bool MayBecome(const LinuxResources& asked, const LinuxResources& shown) {
  if (asked == shown) return true;
  const bool all = asked.cpu_period.has_value() <= shown.cpu_period.has_value() &&
                   asked.cpu_quota.has_value() <= shown.cpu_quota.has_value() &&
                   asked.cpu_shares.has_value() <= shown.cpu_shares.has_value() &&
                   asked.memory_limit.has_value() <= shown.memory_limit.has_value();
  return all && asked.cpuset_cpus && asked.cpuset_cpus == shown.cpuset_cpus &&
         asked.cpuset_mems == shown.cpuset_mems;
}

}  // namespace

void UpdateQueue::SetHost(ApiVersion version, ByCri by_cri) {
  by_cri_ = version < kSafe ? std::move(by_cri) : nullptr;
  cri_away_since_.reset();
}

std::shared_ptr<const UpdateQueue::Change> UpdateQueue::ChangeOf(const ResourceValues& values) {
  if (last_ == nullptr || values != last_->values) {
    auto change = std::make_shared<Change>();
    change->values = values;
    change->resources = AsResources(values);
    AddTo(values, *change->message.mutable_resources());
    change->encoded = change->message.SerializeAsString();
    last_ = std::move(change);
  }
  return last_;
}

void UpdateQueue::Add(const ContainerId& id, std::shared_ptr<const Change> change, Done done) {
  waiting_.push_back({.id = id, .change = std::move(change), .done = std::move(done)});
  FlushWithin(kAtOnce);
}

void UpdateQueue::FlushWithin(std::chrono::milliseconds time) {
  if (flush_ != nullptr && (flushes_at_once_ || time != kAtOnce)) return;
  flushes_at_once_ = time == kAtOnce;
  flush_ = loop_.After(time, [this] { Flush(); });
}

void UpdateQueue::TakeForAnswer(const ContainerId& own, uint32_t field, std::string& answer) {
  if (waiting_.empty()) return;
  std::vector<Waiting> taken = std::exchange(waiting_, {});
  const auto is_own = [&own](const Waiting& each) { return each.id == own; };
  std::ranges::copy_if(taken, std::back_inserter(waiting_), is_own);
  std::erase_if(taken, is_own);
  if (waiting_.empty()) flush_.reset();
  AddUpdates(taken, field, answer);
  loop_.Post([this, alive = lifetime_.token(), taken = std::move(taken)] {
    for (const Waiting& each : taken)
      if (!alive.expired()) Finish(each, OkStatus());
  });
}

void UpdateQueue::AddUpdates(std::span<const Waiting> updates, uint32_t field,
                             std::string& answer) {
  using Update = api::ContainerUpdate;
  const auto size_of = [](const Waiting& each) {
    return FieldWriter::SizeOf(Update::kContainerIdFieldNumber, each.id.value().size()) +
           FieldWriter::SizeOf(Update::kLinuxFieldNumber, each.change->encoded.size()) +
           FieldWriter::SizeOf(Update::kIgnoreFailureFieldNumber, 0);
  };
  size_t all = 2 * FieldWriter::kMaxVarint;  // room that the writer requires before a field
  for (const Waiting& each : updates)
    all += FieldWriter::SizeOf(field, size_of(each));
  FieldWriter fields(answer);
  fields.Reserve(all);
  for (const Waiting& each : updates) {
    fields.Header(field, size_of(each));
    fields.Bytes(Update::kContainerIdFieldNumber, each.id.value());
    fields.Bytes(Update::kLinuxFieldNumber, each.change->encoded);
    // The event must not fail because a container has ended meanwhile.
    fields.Number(Update::kIgnoreFailureFieldNumber, 1);
  }
}

void UpdateQueue::Finish(const Waiting& update, const Status& status) const {
  if (status.ok()) applied_(update.id, update.change->resources);
  update.done(status);
}

void UpdateQueue::Flush() {
  flush_.reset();
  std::vector<Waiting> updates = std::exchange(waiting_, {});
  const auto by_cri =
      std::stable_partition(updates.begin(), updates.end(),
                            [this](const Waiting& each) { return each.by_nri || !by_cri_; });
  FlushByCri({std::make_move_iterator(by_cri), std::make_move_iterator(updates.end())});
  updates.erase(by_cri, updates.end());
  if (!updates.empty()) FlushByNri(std::move(updates));
}

void UpdateQueue::FlushByCri(std::vector<Waiting> updates) {
  for (Waiting& each : updates) {
    asked_by_cri_.emplace(each.id.value(), Asked{.change = each.change});
    const ContainerId id = each.id;
    const std::shared_ptr<const Change> change = each.change;
    by_cri_(id, change->values,
            lifetime_.Guard([this, each = std::move(each)](const Status& status) {
              OnCriAnswer(each, status);
            }));
  }
}

void UpdateQueue::OnCriAnswer(const Waiting& update, const Status& status) {
  const auto [begin, end] = asked_by_cri_.equal_range(update.id.value());
  const auto asked = std::find_if(
      begin, end, [&](const auto& each) { return each.second.change == update.change; });
  if (asked != end) asked_by_cri_.erase(asked);
  if (status.ok()) cri_works_ = true;
  const bool away = status.code() == StatusCode::kUnavailable;
  const bool has_others = status.code() == StatusCode::kNotFound && has_(update.id);
  if (cri_works_ || !(away || has_others)) return Finish(update, status);
  const auto now = loop_.Now();
  if (!cri_away_since_) cri_away_since_ = now;
  Waiting again = update;
  again.by_nri = has_others || now - *cri_away_since_ >= kCriPatience;
  if (again.by_nri && !std::exchange(warned_, true)) {
    GetLogger("nri/plugin")
        .Warn(
            "the runtime cannot be asked by its CRI, which -runtime-socket tells ({}): containers "
            "are updated by NRI, which before version 0.12.1 can lock the runtime up",
            Message(status));
  }
  const auto pause = again.by_nri ? kAtOnce : kCriPause;
  waiting_.push_back(std::move(again));
  FlushWithin(pause);
}

bool UpdateQueue::TakeOwn(const ContainerId& id, const LinuxResources& resources) {
  const auto [begin, end] = asked_by_cri_.equal_range(id.value());
  const auto own = std::find_if(begin, end, [&resources](const auto& each) {
    return !each.second.shown && MayBecome(each.second.change->resources, resources);
  });
  if (own == end) return false;
  return own->second.shown = true;
}

void UpdateQueue::FlushByNri(std::vector<Waiting> all) {
  std::vector<api::ContainerUpdate> updates;
  const auto waiting = std::make_shared<std::vector<Waiting>>(std::move(all));
  for (const Waiting& each : *waiting) {
    api::ContainerUpdate& update = updates.emplace_back();
    update.set_container_id(std::string(each.id.value()));
    *update.mutable_linux() = each.change->message;
  }
  connection_->UpdateContainers(
      std::move(updates),
      lifetime_.Guard([this, waiting](const StatusOr<std::vector<api::ContainerUpdate>>& failed) {
        OnNriAnswer(*waiting, failed);
      }));
}

void UpdateQueue::OnNriAnswer(const std::vector<Waiting>& updates,
                              const StatusOr<std::vector<api::ContainerUpdate>>& failed) {
  const std::weak_ptr<void> alive = lifetime_.token();
  // containerd and CRI-O answer with an error if any update fails. It does not tell which one, so
  // each container is asked about alone.
  if (!failed.ok() && !IsUnclear(failed.status().code()) && updates.size() > 1) {
    for (const Waiting& each : updates)
      FlushByNri({each});
    return;
  }
  std::set<std::string, std::less<>> ids;
  if (failed.ok()) {
    for (const api::ContainerUpdate& update : *failed)
      ids.insert(update.container_id());
  }
  for (const Waiting& each : updates) {
    Status status = failed.status();
    if (failed.ok() && ids.contains(each.id.value())) {
      status = Internal("the runtime could not update container {}", each.id.value());
    }
    Finish(each, status);
    if (alive.expired()) return;
  }
}

}  // namespace resmgr::nri
