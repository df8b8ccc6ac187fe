// SPDX-License-Identifier: Apache-2.0
// The part of BalloonsPolicy that moves containers between balloons of one type because of their
// use.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "pkg/allocator/want_of_room.h"
#include "policies/balloons/balloons_policy.h"

namespace resmgr {
namespace {

constexpr std::string_view kByUse = "; moved by what is used";

// Why a container must stay in its balloon; empty if it may move.
std::string_view WhyItStays(const BalloonSetup& setup, const Balloon& balloon,
                            const BalloonMember& member) {
  const BalloonType& type = setup.type(balloon.type);
  if (type.alone) return "its claim keeps its CPUs";
  if (member.type != balloon.type || member.text.starts_with(kWantOfRoom))
    return "it waits for room in a balloon of its type";
  if (type.keeps_apart()) return "its balloon is chosen by its group or its namespace";
  if (!type.close_to.empty() || !member.hints.empty()) return "it is near its devices";
  const bool together = std::ranges::any_of(balloon.members, [&](const BalloonMemberPtr& other) {
    return other->key != member.key && other->pod == member.pod;
  });
  return together && !type.spread_pods ? "its pod stays together" : "";
}

// Whether the member fits into the balloon's present CPUs.
bool MaySuit(const BalloonBook& book, const Balloon& from, const Balloon& to,
             const BalloonMember& member) {
  return to.type == from.type && to.index != from.index && book.PodFits(to, member) &&
         book.Needed(to, member.demand) <=
             std::min(to.size, book.setup().MaxCpus(to.type, to.index));
}

}  // namespace

policy::SharedPools BalloonsPolicy::Shared(const Snapshot& /*snapshot*/) const {
  policy::SharedPools shared;
  if (book_.balloons().size() < 2 || !setup_->options().pin_cpu) return shared;
  for (const Balloon& balloon : book_.balloons()) {
    const CpuSet cpus = balloon.cpus() | balloon.borrowed | book_.SharedIdle(balloon);
    if (cpus.empty() || setup_->type(balloon.type).alone) continue;
    for (const BalloonMemberPtr& member : balloon.members)
      shared.containers.push_back({member->key, shared.pools.size()});
    shared.pools.push_back({book_.NameOf(balloon), cpus});
  }
  std::ranges::sort(shared.containers, {}, &policy::SharedContainer::key);
  return shared;
}

std::vector<std::string> BalloonsPolicy::TargetsOf(const Snapshot& /*snapshot*/,
                                                   ContainerKey key) const {
  const std::optional<size_t> place = book_.Find(key);
  if (!place) return {};
  const Balloon& from = book_.balloons()[*place];
  const BalloonMemberPtr member = book_.MemberOf(key);
  if (!WhyItStays(*setup_, from, *member).empty()) return {};
  std::vector<std::pair<int64_t, std::string>> found;
  for (const Balloon& balloon : book_.balloons()) {
    if (MaySuit(book_, from, balloon, *member))
      found.emplace_back(balloon.request, book_.NameOf(balloon));
  }
  std::ranges::stable_sort(found, {}, [](const auto& each) { return each.first; });
  std::vector<std::string> names;
  names.reserve(found.size());
  for (auto& [request, name] : found)
    names.push_back(std::move(name));
  return names;
}

// The member's text does not change, so that a restart adopts the container as before.
Status BalloonsPolicy::MoveOne(const policy::PoolMove& move) {
  const std::optional<size_t> place = book_.Find(move.key);
  if (!place) return FailedPrecondition("the container is in no balloon");
  const Balloon& from = book_.balloons()[*place];
  const auto member = std::make_shared<BalloonMember>(*book_.MemberOf(move.key));
  if (const std::string_view why = WhyItStays(*setup_, from, *member); !why.empty())
    return FailedPrecondition("it stays in balloon {}: {}", book_.NameOf(from), why);
  const auto find = [&] {
    return std::ranges::find(book_.balloons(), move.pool,
                             [&](const Balloon& balloon) { return book_.NameOf(balloon); });
  };
  const auto to = find();
  if (to == book_.balloons().end() || !MaySuit(book_, from, *to, *member))
    return FailedPrecondition("balloon {} has no room for it", move.pool);
  if (!member->text.ends_with(kByUse)) member->text += kByUse;
  book_.Leave(move.key);
  const auto now = find();
  if (now == book_.balloons().end()) return FailedPrecondition("balloon {} is gone", move.pool);
  return book_.Join(static_cast<size_t>(now - book_.balloons().begin()), member);
}

StatusOr<Plan> BalloonsPolicy::MoveShared(const Snapshot& snapshot,
                                          std::span<const policy::PoolMove> moves) {
  BalloonBook before = book_;
  for (const policy::PoolMove& move : moves) {
    const Status status = MoveOne(move);
    if (status.ok()) continue;
    book_ = std::move(before);
    return FailedPrecondition("{}", Message(status));
  }
  return MakePlan(snapshot, before);
}

}  // namespace resmgr
