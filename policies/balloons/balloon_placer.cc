// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloon_placer.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "pkg/base/amount_text.h"
#include "policies/balloons/balloon_lending.h"

namespace resmgr {
namespace {

bool OfGroup(const Balloon& balloon, const BalloonMember& member) {
  return std::ranges::any_of(
      balloon.members, [&](const BalloonMemberPtr& other) { return other->group == member.group; });
}

bool OfPod(const Balloon& balloon, const BalloonMember& member) {
  return balloon.HoldsPodOf(member);
}

bool OfNamespace(const Balloon& balloon, const BalloonMember& member) {
  return std::ranges::any_of(balloon.members, [&](const BalloonMemberPtr& other) {
    return other->namespace_name == member.namespace_name;
  });
}

bool Any(const Balloon&, const BalloonMember&) {
  return true;
}

// The expected use of each CPU of a balloon with `size` CPUs; a container without a request counts
// as a tenth of a CPU.
int64_t Crowd(const Balloon& balloon, int size) {
  int64_t sum = 0;
  for (const BalloonMemberPtr& member : balloon.members)
    sum += member->demand == 0 ? 100 : member->demand;
  return sum / size;
}

constexpr std::string_view kOfOthers = "; with CPUs of others that share theirs";

// The levels at which CPUs for a balloon are sought, one after the other.
constexpr std::array kWherePossibleTogether = {BalloonLevel::kNuma, BalloonLevel::kPackage,
                                               BalloonLevel::kSystem};

// Whether the container is placed by the balloons' use: one without a request fits everywhere.
bool SpreadsEvenly(const BalloonType& type, const BalloonMember& member) {
  return member.demand == 0 && type.spread_best_effort &&
         type.fill_order == BalloonFillOrder::kBalanced;
}

Status NoSuch(std::string_view step) {
  return ResourceExhausted("no balloon by {}", step);
}

std::optional<size_t> PlaceOf(const BalloonBook& book, uint64_t serial) {
  const auto at = std::ranges::find(book.balloons(), serial, &Balloon::serial);
  if (at == book.balloons().end()) return std::nullopt;
  return static_cast<size_t>(at - book.balloons().begin());
}

// The CPUs in which a container that is to be alone gets its balloon.
CpuSet PlaceOfAlone(const BalloonSetup& setup, const BalloonMember& member) {
  return member.hints.empty() ? setup.available() : member.hints.front().cpus & setup.available();
}

}  // namespace

// Tries the candidates in order, and takes the first balloon that can grow as needed.
BalloonPlacer::Try BalloonPlacer::Fill(BalloonBook& book, BalloonMember& member,
                                       const BalloonMemberPtr& shared, std::string_view step,
                                       bool (*belongs)(const Balloon&, const BalloonMember&),
                                       Room room) {
  const BalloonType& type = book.setup().type(member.type);
  // Smaller is better: first the use per CPU (only for a container without a request), then the
  // most free CPUs, then the fewest containers; packed filling reverses the last two,
  // and first-free filling ignores them.
  using Rank = std::tuple<int64_t, int64_t, int64_t, uint64_t>;
  std::vector<std::pair<Rank, size_t>> candidates;
  for (size_t place = 0; place < book.balloons().size(); ++place) {
    const Balloon& balloon = book.balloons()[place];
    if (balloon.type != member.type || !belongs(balloon, member)) continue;
    if (!book.PodFits(balloon, member)) continue;
    const int present = balloon.size;
    const int size = room == Room::kPresent ? present : book.MostNow(balloon);
    if (size == 0 || book.Needed(balloon, member.demand) > size) continue;
    const int compared = room == Room::kMost ? size : present;
    int64_t free = int64_t{10} * type.overcommit_percent * compared - balloon.demand;
    auto containers = static_cast<int64_t>(balloon.members.size());
    if (type.fill_order == BalloonFillOrder::kPacked) {
      free = -free;
      containers = -containers;
    }
    if (type.fill_order == BalloonFillOrder::kFirstFree) free = containers = 0;
    const int64_t crowd = SpreadsEvenly(type, member) ? Crowd(balloon, std::max(present, 1)) : 0;
    candidates.push_back({{crowd, -free, containers, balloon.serial}, place});
  }
  std::ranges::sort(candidates);
  for (const auto& [rank, place] : candidates) {
    if (!book.Join(place, shared).ok()) continue;
    member.text += fmt::format("; {}", step);
    return place;
  }
  return NoSuch(step);
}

BalloonPlacer::Try BalloonPlacer::Alone(BalloonBook& book, BalloonMember& member,
                                        const BalloonMemberPtr& shared) const {
  Try found = book.CreateAlone(shared, PlaceOfAlone(book.setup(), member));
  if (found.ok()) member.text += "; new balloon";
  return found;
}

BalloonPlacer::Try BalloonPlacer::New(BalloonBook& book, BalloonMember& member,
                                      const BalloonMemberPtr& shared) {
  for (size_t place = 0; place < book.balloons().size(); ++place) {
    const Balloon& balloon = book.balloons()[place];
    if (balloon.type != member.type || !balloon.members.empty()) continue;
    if (!book.Join(place, shared).ok()) continue;
    member.text += "; empty balloon";
    return place;
  }
  const BalloonBook before = book;
  const StatusOr<size_t> place = book.Create(member.type, member.hints);
  if (!place.ok()) return place.status();
  const Status joined = book.Join(*place, shared);
  if (!joined.ok()) {
    book = before;
    return joined;
  }
  member.text += "; new balloon";
  return *place;
}

BalloonPlacer::Try BalloonPlacer::Together(BalloonBook& book, BalloonMember& member,
                                           const BalloonMemberPtr& shared) {
  const BalloonType& type = book.setup().type(member.type);
  Try found = NoSuch("any rule");
  const auto fill = [&](bool applies, std::string_view step,
                        bool (*belongs)(const Balloon&, const BalloonMember&)) {
    if (applies && !found.ok())
      found = Fill(book, member, shared, step, belongs, Room::kMostByPresent);
  };
  fill(!member.group.empty(), "balloon of its group", OfGroup);
  fill(!type.spread_pods, "balloon of its pod", OfPod);
  fill(type.per_namespace, "balloon of its namespace", OfNamespace);
  return found;
}

BalloonPlacer::Try BalloonPlacer::Chain(BalloonBook& book, BalloonMember& member,
                                        const BalloonMemberPtr& shared) {
  const BalloonType& type = book.setup().type(member.type);
  if (type.alone) return Alone(book, member, shared);
  Try found = Together(book, member, shared);
  const auto fill = [&](std::string_view step, Room room) {
    if (!found.ok()) found = Fill(book, member, shared, step, Any, room);
  };
  const auto create = [&] {
    if (!found.ok()) found = New(book, member, shared);
  };
  if (type.per_namespace || type.prefer_new) create();
  fill("balloon with room", SpreadsEvenly(type, member) ? Room::kMost : Room::kPresent);
  fill("balloon that can grow", Room::kMost);
  create();
  return found;
}

StatusOr<size_t> BalloonPlacer::PlaceWithoutOthers(const std::shared_ptr<BalloonMember>& member) {
  member->considered = Considered(*member);
  return ByRules(*member, member);
}

StatusOr<size_t> BalloonPlacer::PlaceTogether(const std::shared_ptr<BalloonMember>& member) {
  member->considered = Considered(*member);
  return Together(book_, *member, member);
}

Status BalloonPlacer::GrowInPlace(size_t place, const std::shared_ptr<BalloonMember>& member) {
  const Balloon& balloon = book_.balloons()[place];
  const auto replace = [&, serial = balloon.serial](BalloonBook& book) -> Try {
    const std::optional<size_t> at = PlaceOf(book, serial);
    // Its balloon may be one of those whose containers moved.
    if (!at || book.balloons()[*at].MemberOf(member->key) == nullptr) return NoSuch("its place");
    RESMGR_RETURN_IF_ERROR(book.Replace(*at, member->key, member));
    return *at;
  };
  const CpuSet own = balloon.cpus();
  const int64_t more = member->request - balloon.MemberOf(member->key)->request;
  const bool may_take = balloon.members.size() == 1 && SchedulerMaySend(more) &&
                        book_.setup().options().overcommit_when_short;
  Try found = MakeRoom(*member, replace);
  if (!found.ok() && may_take)
    found = TakeFromSharing(*member, replace, own, kWherePossibleTogether, true);
  return found.status();
}

StatusOr<size_t> BalloonPlacer::Place(const std::shared_ptr<BalloonMember>& member) {
  Try found = PlaceWithoutOthers(member);
  if (found.ok() || !LimitsAllow(*member)) return found.ok() ? found : Refusal(*member);
  const auto chain = [&](BalloonBook& book) { return Chain(book, *member, member); };
  found = MakeRoom(*member, chain);
  if (found.ok()) return found;
  const bool alone = book_.setup().type(member->type).alone;
  if (!alone && book_.setup().options().overcommit_when_short &&
      SchedulerMaySend(member->request)) {
    // Since each balloon has whole CPUs, all balloons may need more CPUs than the requests add up
    // to.
    found = TakeFromSharing(*member, chain, {}, kWherePossibleTogether, true);
    if (!found.ok()) found = Overcommit(*member, member);
  }
  return found.ok() ? found : Refusal(*member);
}

StatusOr<size_t> BalloonPlacer::PlaceRunning(const std::shared_ptr<BalloonMember>& member) {
  Try found = Place(member);
  const bool alone = book_.setup().type(member->type).alone;
  return found.ok() || alone ? found : Overcommit(*member, member);
}

bool BalloonPlacer::LimitsAllow(const BalloonMember& member) const {
  const BalloonSetup& setup = book_.setup();
  for (const Balloon& balloon : book_.balloons()) {
    if (balloon.type != member.type || !book_.PodFits(balloon, member)) continue;
    if (book_.SizeFits(balloon, member)) return true;
  }
  return book_.Count(member.type) < setup.MaxBalloons(member.type) &&
         setup.CpusFor(member.type, member.demand) <=
             setup.MaxCpus(member.type, book_.NextIndex(member.type));
}

// Whether the scheduler may have sent so large a request by its own arithmetic: with it, all
// requests fit into the allocatable CPUs, or it is none. Claims are not counted there.
bool BalloonPlacer::SchedulerMaySend(int64_t request) const {
  if (request <= 0) return true;
  int64_t sum = request;
  const BalloonSetup& setup = book_.setup();
  for (const Balloon& balloon : book_.balloons()) {
    if (!setup.type(balloon.type).alone) sum += balloon.request;
  }
  return sum <= setup.allocatable_milli();
}

// The best merge: the containers of one balloon move into another one of the same type. Types that
// keep containers apart come last; then the CPUs saved count, less the containers moved.
std::optional<BalloonPlacer::Merge> BalloonPlacer::BestMerge(const BalloonBook& book,
                                                             int budget) const {
  const BalloonSetup& setup = book.setup();
  std::optional<Merge> best;
  const auto rank = [](const Merge& merge) {
    return std::tuple(merge.dedicated, merge.moved - merge.saved, merge.moved, merge.from,
                      merge.to);
  };
  for (const Balloon& from : book.balloons()) {
    const BalloonType& type = setup.type(from.type);
    const auto moved = static_cast<int>(from.members.size());
    if (moved == 0 || moved > budget || type.own_cpus || type.composite() || type.alone) continue;
    const bool goes = book.Count(from.type) > setup.MinBalloons(from.type);
    const int kept = goes ? 0 : setup.MinCpus(from.type, from.index);
    for (const Balloon& to : book.balloons()) {
      if (&to == &from || to.type != from.type || to.members.empty()) continue;
      const int needed = book.Needed(to, from.demand);
      const int size = to.size;
      const int saved = from.size - kept - std::max(0, needed - size);
      if (saved <= 0 || needed > setup.MaxCpus(to.type, to.index)) continue;
      if (!from.PodsFit(to, type.max_pods)) continue;
      const Merge merge{from.serial, to.serial, saved, moved, type.keeps_apart()};
      if (!best || rank(merge) < rank(*best)) best = merge;
    }
  }
  return best;
}

bool BalloonPlacer::CarryOut(BalloonBook& book, const Merge& merge) {
  const std::optional<size_t> from = PlaceOf(book, merge.from);
  const std::vector<BalloonMemberPtr> members = book.balloons()[*from].members;
  // The texts of guests name their balloon.
  const std::string in_former = fmt::format(" in {},", book.NameOf(book.balloons()[*from]));
  for (const BalloonMemberPtr& member : members)
    book.Leave(member->key);
  for (const BalloonMemberPtr& member : members) {
    const std::optional<size_t> to = PlaceOf(book, merge.to);
    if (!to) return false;
    auto moved = std::make_shared<BalloonMember>(*member);
    moved->text.resize(std::min(moved->text.find("; "), moved->text.size()));
    const size_t at = moved->text.rfind(in_former);
    if (at != std::string::npos) {
      const std::string in_present = fmt::format(" in {},", book.NameOf(book.balloons()[*to]));
      moved->text.replace(at, in_former.size(), in_present);
    }
    moved->text += "; moved to make room";
    if (!book.Join(*to, moved).ok()) return false;
  }
  return true;
}

BalloonPlacer::Try BalloonPlacer::MakeRoom(BalloonMember& member, const Attempt& attempt) {
  BalloonBook trial = book_;
  auto budget = static_cast<int>(book_.setup().options().move_budget);
  const std::string text = member.text;
  while (budget > 0) {
    const std::optional<Merge> merge = BestMerge(trial, budget);
    if (!merge || !CarryOut(trial, *merge)) break;
    budget -= merge->moved;
    Try found = attempt(trial);
    if (found.ok()) {
      book_ = std::move(trial);
      return found;
    }
    member.text = text;
  }
  return NoSuch("moving others");
}

// Takes CPUs of balloons that can give some up. All CPUs come from one part of the machine at one
// of the levels; the part with the most idle CPUs is tried first.
BalloonPlacer::Try BalloonPlacer::TakeFromSharing(BalloonMember& member, const Attempt& attempt,
                                                  const CpuSet& own,
                                                  std::span<const BalloonLevel> levels,
                                                  bool may_lack) {
  const BalloonSetup& setup = book_.setup();
  const int least = setup.MinCpus(member.type, book_.NextIndex(member.type));
  const int needed =
      setup.WholeSize(member.type, std::max(setup.CpusFor(member.type, member.demand), least));
  const std::string text = member.text;
  for (const BalloonLevel level : levels) {
    std::vector<CpuSet> parts = PartsAt(setup.machine(), level, setup.available());
    std::ranges::stable_sort(parts, {},
                             [&](const CpuSet& part) { return -part.CountCommon(book_.idle()); });
    for (const CpuSet& part : parts) {
      BalloonBook trial = book_;
      BalloonDonors donors(trial, part);
      const int missing = needed - part.CountCommon(trial.idle() | own);
      if (missing <= 0 || missing > donors.most()) continue;
      donors.Give(missing);
      Try found = attempt(trial);
      if (found.ok() && trial.balloons()[*found].cpus().IsSubsetOf(part) &&
          donors.GrowAgain(may_lack)) {
        trial.GrowShort();
        if (member.text.find(kOfOthers) == std::string::npos) member.text += kOfOthers;
        book_ = std::move(trial);
        return found;
      }
      member.text = text;
    }
  }
  return NoSuch("CPUs of others");
}

// If the type wants its balloons in one part of the machine, and this one would be split, takes
// CPUs there from other balloons that find as many elsewhere.
BalloonPlacer::Try BalloonPlacer::ByRules(BalloonMember& member, const BalloonMemberPtr& shared) {
  const BalloonSetup& setup = book_.setup();
  const BalloonLevel within = setup.type(member.type).make_room_within;
  if (within == BalloonLevel::kNone) return Chain(book_, member, shared);
  BalloonBook before = book_;
  std::string text = member.text;
  Try found = Chain(book_, member, shared);
  if (!found.ok()) return found;
  const CpuSet& cpus = book_.balloons()[*found].cpus();
  const std::vector<CpuSet> parts = PartsAt(setup.machine(), within, setup.available());
  if (std::ranges::any_of(parts, [&](const CpuSet& part) { return cpus.IsSubsetOf(part); })) {
    return found;
  }
  std::swap(book_, before);
  std::swap(member.text, text);
  const auto chain = [&](BalloonBook& book) { return Chain(book, member, shared); };
  Try together = TakeFromSharing(member, chain, {}, {&within, 1}, false);
  if (together.ok()) return together;
  std::swap(book_, before);
  std::swap(member.text, text);
  return found;
}

// Adds the member to the balloon with the least demand per CPU: its own type first, then others,
// reserved and fixed ones late, those with their maximum number of pods last.
BalloonPlacer::Try BalloonPlacer::Overcommit(BalloonMember& member,
                                             const BalloonMemberPtr& shared) {
  const BalloonSetup& setup = book_.setup();
  const BalloonBook before = book_;
  // A new balloon with the remaining idle CPUs may be the best.
  const bool idle = !book_.FreeForNew(member.type, book_.NextIndex(member.type)).empty();
  const StatusOr<size_t> created =
      idle ? book_.Create(member.type, member.hints) : Try(NoSuch("idle CPUs"));
  using Rank = std::tuple<int, int64_t, uint64_t>;
  std::vector<std::pair<Rank, size_t>> candidates;
  for (size_t place = 0; place < book_.balloons().size(); ++place) {
    const Balloon& balloon = book_.balloons()[place];
    const int size = book_.MostNow(balloon);
    const BalloonType& type = setup.type(balloon.type);
    if (size == 0 || type.alone) continue;
    const bool own = balloon.type == member.type;
    const bool fits = book_.SizeFits(balloon, member);
    const bool fixed =
        type.name == kReservedType || type.own_cpus || setup.MaxCpus(balloon.type, 0) == 0;
    // Balloons that keep containers apart get guests only late.
    int group = own ? (fits ? 0 : 4) : (fixed ? 3 : (fits && !type.keeps_apart() ? 1 : 2));
    if (!book_.PodFits(balloon, member)) group = 5;
    const int64_t load = (balloon.demand + member.demand) / size;
    candidates.push_back({{group, load, balloon.serial}, place});
  }
  std::ranges::sort(candidates);
  const BalloonBook with_created = std::exchange(book_, before);
  for (const auto& [rank, place] : candidates) {
    // The created balloon is in `with_created` only; the other candidates are tried without it.
    BalloonBook trial = created.ok() && place == *created ? with_created : before;
    trial.Squeeze(place, shared);
    const Balloon& balloon = trial.balloons()[place];
    // A composite balloon may need more CPUs than are left even for its first container, and then
    // has none.
    if (balloon.size == 0) continue;
    member.text =
        TextForWantOfRoom(member.text, trial.NameOf(balloon), setup.type(member.type).name);
    book_ = std::move(trial);
    return place;
  }
  return NoSuch("sharing");
}

// Returns one balloon more than are shown if there are more, so that the caller can tell.
std::vector<ConsideredBalloon> BalloonPlacer::Considered(const BalloonMember& member) const {
  std::vector<ConsideredBalloon> considered;
  if (book_.setup().type(member.type).alone) return considered;
  considered.reserve(kMostToldBalloons + 1);
  for (const Balloon& balloon : book_.balloons()) {
    if (balloon.type != member.type) continue;
    considered.push_back({.type = balloon.type,
                          .index = balloon.index,
                          .request = balloon.request,
                          .size = balloon.size,
                          .needed = book_.Needed(balloon, member.demand),
                          .most = book_.MostNow(balloon),
                          .pods_fit = book_.PodFits(balloon, member)});
    if (considered.size() > kMostToldBalloons) break;
  }
  return considered;
}

Status BalloonPlacer::Refusal(const BalloonMember& member) const {
  const BalloonSetup& setup = book_.setup();
  const BalloonType& type = setup.type(member.type);
  if (type.alone) return RefusalAlone(member);
  const int most = setup.MaxCpus(member.type, 0);
  std::string limits;
  if (most <= setup.available().size()) limits += fmt::format(", maxCPUs {}", most);
  if (setup.MaxBalloons(member.type) <= setup.available().size()) {
    limits += fmt::format(", maxBalloons {}", setup.MaxBalloons(member.type));
  }
  if (type.max_pods > 0) limits += fmt::format(", maxPods {}", type.max_pods);
  // A request above all allocatable CPUs can never be met.
  const auto code = member.request > setup.allocatable_milli() ? StatusCode::kInvalidArgument
                                                               : StatusCode::kResourceExhausted;
  return MakeStatus(
      code,
      fmt::format(
          "no suitable balloon instance available: type {} ({}{}), {} needed for {}m, {} idle",
          type.name, CountText(book_.Count(member.type), "balloon"), limits,
          CountText(setup.CpusFor(member.type, member.demand), "CPU"), member.demand,
          CountText(book_.idle().size(), "CPU")));
}

Status BalloonPlacer::RefusalAlone(const BalloonMember& member) const {
  const CpuSet place = PlaceOfAlone(book_.setup(), member);
  return ResourceExhausted(
      "needs {} that no other balloon has, and of CPUs {} only {} idle",
      CountText(book_.setup().CpusFor(member.type, member.demand), "CPU"), place.ToString(),
      (place & book_.idle()).empty() ? "none is" : (place & book_.idle()).ToString() + " are");
}

std::vector<std::string> BalloonPlacer::WaysIn(const BalloonMember& member) const {
  const BalloonSetup& setup = book_.setup();
  const BalloonType& type = setup.type(member.type);
  const int needed = setup.CpusFor(member.type, member.demand);
  const bool has_room = needed <= book_.idle().size();
  if (!has_room) {
    if (setup.options().overcommit_when_short || !SchedulerMaySend(member.request)) return {};
    return {"whenShort: overcommit"};
  }
  const bool too_small = needed > setup.MaxCpus(member.type, book_.NextIndex(member.type));
  const bool too_few = book_.Count(member.type) >= setup.MaxBalloons(member.type);
  if (too_small == too_few || type.own_cpus || type.composite()) return {};
  if (too_small) return {fmt::format("maxCPUs: {} of type {}", needed, type.name)};
  return {fmt::format("maxBalloons: {} of type {}", book_.Count(member.type) + 1, type.name)};
}

}  // namespace resmgr
