// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/testing/reference_balloons.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include <fnmatch.h>

namespace resmgr::test {
namespace {

// The virtual devices.
constexpr const char* kReserved = "reserved CPUs";
constexpr const char* kIsolated = "isolated CPUs";

bool MatchesGlob(const std::string& glob, const std::string& text) {
  return fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

std::optional<std::string> ValueOf(const std::string& key, const ReferenceContainer& container) {
  constexpr std::string_view kLabels = "pod/labels/";
  if (key == "name") return container.name;
  if (key == "namespace") return container.namespace_name;
  if (key == "qosclass") return container.qos_class;
  const auto label = container.labels.find(key.substr(kLabels.size()));
  if (label == container.labels.end()) return std::nullopt;
  return label->second;
}

bool Holds(const ReferenceExpression& expression, const ReferenceContainer& container) {
  const std::optional<std::string> value = ValueOf(expression.key, container);
  if (expression.op == "Exists") return value.has_value();
  if (expression.op == "NotExist") return !value.has_value();
  const bool among = value.has_value() &&
                     std::count(expression.values.begin(), expression.values.end(), *value) > 0;
  const bool wanted = expression.op == "Equals" || expression.op == "In";
  return among == wanted;
}

int RoundedUp(int64_t milli_cpu) {
  return static_cast<int>((milli_cpu + 999) / 1000);
}

// The share of each of `parts` parts.
int ShareOf(int size, size_t parts) {
  const int count = static_cast<int>(parts);
  return (size + count - 1) / count;
}

int Clamped(const ReferenceType& type, int size) {
  size = std::max(size, type.min_cpus);
  return type.max_cpus > 0 ? std::min(size, type.max_cpus) : size;
}

void AddWithParts(const std::list<ReferenceBalloon>& balloons,
                  std::vector<const ReferenceBalloon*>& all) {
  for (const ReferenceBalloon& balloon : balloons) {
    all.push_back(&balloon);
    AddWithParts(balloon.parts, all);
  }
}

// The number of CPUs of the balloon for `size`, with the parts rounded up.
int SizeAt(const ReferenceBalloon& balloon, int size) {
  size = Clamped(*balloon.type, size);
  if (balloon.parts.empty()) return size;
  int sum = 0;
  for (const ReferenceBalloon& part : balloon.parts)
    sum += SizeAt(part, ShareOf(size, balloon.parts.size()));
  return sum;
}

// Returns the CPUs that came with this container, and forgets them.
CpuSet TakeGrown(ReferenceBalloon& balloon, uint64_t with) {
  CpuSet all = std::exchange(balloon.grown, CpuSet());
  if (balloon.grown_by != with) all = CpuSet();
  for (ReferenceBalloon& part : balloon.parts)
    all |= TakeGrown(part, with);
  return all;
}

void GiveUp(ReferenceBalloon& balloon, const CpuSet& cpus) {
  balloon.own -= cpus;
  for (ReferenceBalloon& part : balloon.parts)
    GiveUp(part, cpus);
}

bool Contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

CpuSet ReferenceBalloon::cpus() const {
  CpuSet all = own;
  for (const ReferenceBalloon& part : parts)
    all |= part.cpus();
  return all;
}

int64_t ReferenceBalloon::requests() const {
  int64_t sum = 0;
  for (const ReferenceContainer& container : containers)
    sum += container.milli_cpu;
  return sum;
}

ReferenceBalloons::ReferenceBalloons(const Machine& machine, ReferenceConfig config)
    : machine_(machine),
      config_(std::move(config)),
      cpus_(machine, config_.available),
      devices_(config_.devices) {
  AddBuiltInTypes();
  if (!config_.reserved_cpus.empty()) devices_[kReserved] = config_.reserved_cpus;
  const CpuSet isolated = machine_.isolated() & config_.available;
  if (!isolated.empty()) devices_[kIsolated] = isolated;
}

void ReferenceBalloons::AddBuiltInTypes() {
  const auto find = [&](const char* name) {
    return std::find_if(config_.types.begin(), config_.types.end(),
                        [&](const ReferenceType& type) { return type.name == name; });
  };
  if (find("reserved") == config_.types.end()) {
    ReferenceType reserved;
    reserved.name = "reserved";
    reserved.priority = ReferencePriority::kLow;
    config_.types.insert(config_.types.begin(), reserved);
  }
  SetUpReserved(*find("reserved"));
  if (find("default") == config_.types.end()) {
    ReferenceType fallback;
    fallback.name = "default";
    fallback.min_balloons = 1;
    fallback.max_balloons = 1;
    fallback.priority = ReferencePriority::kLow;
    config_.types.push_back(fallback);
  }
}

void ReferenceBalloons::SetUpReserved(ReferenceType& reserved) {
  reserved.min_balloons = 1;
  reserved.max_balloons = 1;
  reserved.namespaces.push_back("kube-system");
  for (const std::string& glob : config_.reserved_namespaces)
    reserved.namespaces.push_back(glob);
  if (config_.reserved_cpus.empty()) {
    if (reserved.min_cpus == 0) reserved.min_cpus = RoundedUp(config_.reserved_milli);
  } else {
    reserved.priority = ReferencePriority::kNormal;
    // Row 4 of 12c: the balloon owns them from the start.
    reserved.min_cpus = config_.reserved_cpus.size();
  }
}

std::vector<std::string> ReferenceBalloons::ClosenessOf(const ReferenceType& type) const {
  std::vector<std::string> devices;
  if (type.name == "reserved" && devices_.contains(kReserved)) devices.push_back(kReserved);
  devices.insert(devices.end(), type.close.begin(), type.close.end());
  if (type.isolated && devices_.contains(kIsolated)) devices.push_back(kIsolated);
  return devices;
}

std::vector<std::string> ReferenceBalloons::AvoidedBy(const ReferenceType& type) const {
  const std::vector<std::string> wanted = ClosenessOf(type);
  std::vector<std::string> avoided;
  const auto avoid = [&](const std::string& device) {
    if (!Contains(wanted, device) && !Contains(avoided, device)) avoided.push_back(device);
  };
  if (devices_.contains(kIsolated)) avoid(kIsolated);
  for (const ReferenceType& other : config_.types) {
    for (const std::string& device : ClosenessOf(other))
      avoid(device);
  }
  return avoided;
}

ReferenceWish ReferenceBalloons::WishOf(const ReferenceBalloon& balloon) const {
  const ReferenceType& type = *balloon.type;
  ReferenceWish wish;
  wish.balancing = type.balancing.value_or(config_.balancing);
  wish.spread_cores = type.spread_cores.value_or(config_.spread_cores);
  for (const std::string& device : ClosenessOf(type))
    wish.close.push_back(devices_.at(device));
  for (const std::string& device : AvoidedBy(type))
    wish.far.push_back(devices_.at(device));
  for (const std::string& name : type.loads) {
    wish.own_load |= config_.loads.at(name);
    for (const ReferenceBalloon* const other : WithParts()) {
      if (other == &balloon || !Contains(other->type->loads, name)) continue;
      wish.loaded |= cpus_.CoresOf(other->own);
    }
  }
  return wish;
}

CpuSet ReferenceBalloons::Idle() const {
  CpuSet idle = config_.available;
  for (const ReferenceBalloon& balloon : balloons_)
    idle -= balloon.cpus();
  return idle;
}

CpuSet ReferenceBalloons::SharedIdle(const ReferenceBalloon& balloon) const {
  const std::string& level = balloon.type->share_idle;
  CpuSet shared;
  for (const int own : balloon.cpus()) {
    const Cpu& cpu = *machine_.FindCpu(own);
    for (const int other_id : machine_.online()) {
      const Cpu& other = *machine_.FindCpu(other_id);
      const bool near =
          level == "system" || (level == "package" && cpu.package == other.package) ||
          (level == "die" && cpu.die == other.die) || (level == "numa" && cpu.numa == other.numa) ||
          (level == "l3cache" && cpu.l3 >= 0 && cpu.l3 == other.l3) ||
          (level == "l2cache" && cpu.l2 == other.l2) || (level == "core" && cpu.core == other.core);
      if (near) shared.Add(other_id);
    }
  }
  return (shared & Idle()) - machine_.isolated();
}

// With hidden threads one of each core: one of the balloon's own where it has any there.
CpuSet ReferenceBalloons::Visible(const ReferenceBalloon& balloon) const {
  CpuSet all = balloon.cpus() | SharedIdle(balloon);
  if (!balloon.type->hide_threads) return all;
  CpuSet visible;
  for (const CpuSet& core : machine_.cores()) {
    const CpuSet own = core & balloon.cpus();
    const CpuSet shown = own.empty() ? core & all : own;
    if (!shown.empty()) visible.Add(shown.First());
  }
  return visible;
}

// More balloons than CPUs are refused.
bool ReferenceBalloons::IsTooMany() const {
  const int cpus = config_.available.size();
  int sum = 0;
  for (const ReferenceType& type : config_.types) {
    if (type.min_balloons > cpus) return true;
    sum += type.min_balloons;
  }
  return sum > cpus + static_cast<int>(config_.types.size());
}

bool ReferenceBalloons::Start() {
  using enum ReferencePriority;
  if (IsTooMany()) return false;
  const auto make = [&](const ReferenceType& type) {
    while (CountOf(type) < type.min_balloons) {
      if (AddBalloon(type) == nullptr) return false;
    }
    return true;
  };
  // Row 4 of 12c: the balloon `reserved` has its own CPUs in any case.
  for (const ReferenceType& type : config_.types) {
    if (type.name == "reserved" && !config_.reserved_cpus.empty() && !make(type)) return false;
  }
  for (const ReferencePriority priority : {kHigh, kNormal, kLow, kNone}) {
    for (const ReferenceType& type : config_.types) {
      if (type.priority == priority && !make(type)) return false;
    }
  }
  return true;
}

bool ReferenceBalloons::Matches(const ReferenceType& type,
                                const ReferenceContainer& container) const {
  for (const ReferenceExpression& expression : type.expressions) {
    if (Holds(expression, container)) return true;
  }
  for (const std::string& glob : type.namespaces) {
    if (MatchesGlob(glob, container.namespace_name)) return true;
  }
  return false;
}

const ReferenceType& ReferenceBalloons::TypeOf(const ReferenceContainer& container) const {
  for (const ReferenceType& type : config_.types) {
    if (type.name == container.annotated) return type;
  }
  for (const ReferenceType& type : config_.types) {
    if (container.annotated.empty() && Matches(type, container)) return type;
  }
  return *std::find_if(config_.types.begin(), config_.types.end(),
                       [](const ReferenceType& type) { return type.name == "default"; });
}

int ReferenceBalloons::CountOf(const ReferenceType& type) const {
  return static_cast<int>(
      std::count_if(balloons_.begin(), balloons_.end(),
                    [&](const ReferenceBalloon& balloon) { return balloon.type == &type; }));
}

int64_t ReferenceBalloons::Free(const ReferenceBalloon& balloon) const {
  return int64_t{1000} * balloon.cpus().size() - balloon.requests();
}

// Row 1 of 12c: the idle CPUs count up to the type's limit.
int64_t ReferenceBalloons::MaximalFree(const ReferenceBalloon& balloon) const {
  int size = balloon.cpus().size() + Idle().size();
  if (balloon.type->max_cpus > 0) size = std::min(size, balloon.type->max_cpus);
  return int64_t{1000} * size - balloon.requests();
}

const ReferenceType& ReferenceBalloons::TypeNamed(const std::string& name) const {
  return *std::find_if(config_.types.begin(), config_.types.end(),
                       [&](const ReferenceType& type) { return type.name == name; });
}

std::vector<const ReferenceBalloon*> ReferenceBalloons::WithParts() const {
  std::vector<const ReferenceBalloon*> all;
  AddWithParts(balloons_, all);
  return all;
}

int ReferenceBalloons::FreeIndex(const ReferenceType& type) const {
  std::set<int> taken;
  for (const ReferenceBalloon& balloon : balloons_) {
    if (balloon.type == &type) taken.insert(balloon.index);
  }
  int index = 0;
  while (taken.contains(index))
    ++index;
  return index;
}

const ReferenceType& ReferenceBalloons::LeastOften(
    const std::vector<std::string>& components) const {
  const std::vector<const ReferenceBalloon*> all = WithParts();
  const std::function<void(const ReferenceType&, std::set<const ReferenceType*>&)> inside =
      [&](const ReferenceType& type, std::set<const ReferenceType*>& types) {
        types.insert(&type);
        for (const std::string& component : type.components)
          inside(TypeNamed(component), types);
      };
  const ReferenceType* least = nullptr;
  std::ptrdiff_t fewest = 0;
  for (const std::string& name : components) {
    std::set<const ReferenceType*> types;
    inside(TypeNamed(name), types);
    const auto count = std::count_if(all.begin(), all.end(), [&](const ReferenceBalloon* balloon) {
      return types.contains(balloon->type);
    });
    if (least != nullptr && count >= fewest) continue;
    least = &TypeNamed(name);
    fewest = count;
  }
  return *least;
}

void ReferenceBalloons::AddParts(ReferenceBalloon& balloon) const {
  const ReferenceType& type = *balloon.type;
  std::vector<const ReferenceType*> components;
  if (type.balance_components) {
    components.push_back(&LeastOften(type.components));
  } else {
    for (const std::string& name : type.components)
      components.push_back(&TypeNamed(name));
  }
  for (const ReferenceType* const component : components) {
    ReferenceBalloon& part = balloon.parts.emplace_back();
    part.type = component;
    AddParts(part);
  }
}

ReferenceBalloon* ReferenceBalloons::AddBalloon(const ReferenceType& type) {
  ReferenceBalloon made;
  made.type = &type;
  made.index = FreeIndex(type);
  AddParts(made);
  ReferenceBalloon& added = balloons_.emplace_back(made);
  if (Resize(added, type.min_cpus)) return &added;
  balloons_.pop_back();
  return nullptr;
}

ReferenceBalloon* ReferenceBalloons::NewBalloon(const ReferenceType& type, int64_t request) {
  const bool idle = !Idle().empty();
  for (ReferenceBalloon& balloon : balloons_) {
    if (balloon.type != &type || !balloon.containers.empty()) continue;
    // Row 2 of 12c: the request has to fit. No container fits without any CPU.
    const bool fits = MaximalFree(balloon) >= request && (idle || !balloon.cpus().empty());
    if (fits && CanTake(balloon, request)) return &balloon;
  }
  if (Idle().size() < std::max(1, type.min_cpus)) return nullptr;
  if (type.max_balloons > 0 && CountOf(type) >= type.max_balloons) return nullptr;
  ReferenceBalloon* const added = AddBalloon(type);
  if (added == nullptr) return nullptr;
  if (MaximalFree(*added) >= request && CanTake(*added, request)) return added;
  balloons_.pop_back();
  return nullptr;
}

ReferenceBalloon* ReferenceBalloons::Choose(const ReferenceType& type,
                                            const ReferenceContainer& container) {
  const int64_t request = container.milli_cpu;
  using Number = std::function<int64_t(const ReferenceBalloon&)>;
  const Number free = [&](const ReferenceBalloon& balloon) { return Free(balloon); };
  // Row 1 of 12c: the parts of a composite balloon may have more than its limit together.
  const Number present = [&](const ReferenceBalloon& balloon) {
    return std::min(Free(balloon), MaximalFree(balloon));
  };
  const Number maximal = [&](const ReferenceBalloon& balloon) { return MaximalFree(balloon); };
  // The best of those with room by `room`, with a container that is `held`.
  const auto best = [&](const char* method, const Number& room, const Number& order,
                        const std::function<bool(const ReferenceContainer&)>& held) {
    ReferenceBalloon* found = nullptr;
    const auto rank = [&](const ReferenceBalloon& balloon) {
      return std::make_pair(-order(balloon), balloon.containers.size());
    };
    for (ReferenceBalloon& balloon : balloons_) {
      if (balloon.type != &type || room(balloon) < request) continue;
      // A balloon without CPUs has no room, not even for a container without a request.
      if (balloon.cpus().empty() && room(balloon) == 0) continue;
      if (!CanTake(balloon, request)) continue;
      if (held && std::none_of(balloon.containers.begin(), balloon.containers.end(), held)) {
        continue;
      }
      if (found == nullptr || rank(balloon) < rank(*found)) found = &balloon;
    }
    if (found != nullptr) method_ = method;
    return found;
  };
  const auto fresh = [&] {
    ReferenceBalloon* const found = NewBalloon(type, request);
    if (found != nullptr) method_ = "new";
    return found;
  };

  ReferenceBalloon* found = nullptr;
  if (!type.group_label.empty() && container.labels.contains(type.group_label)) {
    const std::string& group = container.labels.at(type.group_label);
    found = best("same group", maximal, free, [&](const ReferenceContainer& other) {
      const auto label = other.labels.find(type.group_label);
      return label != other.labels.end() && label->second == group;
    });
  }
  if (found == nullptr && !type.spread_pods) {
    found = best("same pod", maximal, free,
                 [&](const ReferenceContainer& other) { return other.pod == container.pod; });
  }
  if (found == nullptr && type.per_namespace) {
    found = best("same namespace", maximal, free, [&](const ReferenceContainer& other) {
      return other.namespace_name == container.namespace_name;
    });
    if (found == nullptr) found = fresh();
  }
  if (found == nullptr && type.prefer_new) found = fresh();
  if (found == nullptr) found = best("balanced", present, free, nullptr);
  if (found == nullptr) found = best("balanced-inflate", maximal, maximal, nullptr);
  if (found == nullptr && !type.prefer_new) found = fresh();
  return found;
}

int ReferenceBalloons::Target(const ReferenceBalloon& balloon) const {
  return Clamped(*balloon.type, RoundedUp(std::max<int64_t>(1, balloon.requests())));
}

bool ReferenceBalloons::CanTake(ReferenceBalloon& balloon, int64_t request) {
  const ReferenceBalloon before = balloon;
  ReferenceContainer one;
  one.milli_cpu = request;
  balloon.containers.push_back(one);
  const bool can = GrowAsNeeded(balloon, 0);
  balloon = before;
  return can;
}

bool ReferenceBalloons::GrowAsNeeded(ReferenceBalloon& balloon, uint64_t came) {
  const int target = balloon.containers.empty() ? balloon.type->min_cpus : Target(balloon);
  const int size = balloon.cpus().size();
  if (SizeAt(balloon, target) <= size || Resize(balloon, target, came)) return true;
  if (target > size) return false;
  for (int smaller = target - 1; smaller > 0 && SizeAt(balloon, smaller) > size; --smaller)
    if (Resize(balloon, smaller, came)) return true;
  Fill(balloon, target, came);
  return true;
}

void ReferenceBalloons::Fill(ReferenceBalloon& balloon, int size, uint64_t came) {
  size = Clamped(*balloon.type, size);
  for (ReferenceBalloon& part : balloon.parts)
    Fill(part, ShareOf(size, balloon.parts.size()), came);
  const int most = std::min(size, balloon.own.size() + Idle().size());
  if (balloon.parts.empty() && most > balloon.own.size()) ResizeParts(balloon, most, came);
}

void ReferenceBalloons::GrowComposites() {
  for (ReferenceBalloon& balloon : balloons_)
    if (!balloon.parts.empty() && !Idle().empty()) GrowAsNeeded(balloon, 0);
}

bool ReferenceBalloons::Resize(ReferenceBalloon& balloon, int size, uint64_t came) {
  const ReferenceBalloon before = balloon;
  if (ResizeParts(balloon, size, came)) return true;
  balloon = before;
  return false;
}

bool ReferenceBalloons::ResizeParts(ReferenceBalloon& balloon, int size, uint64_t came) {
  size = Clamped(*balloon.type, size);
  for (ReferenceBalloon& part : balloon.parts) {
    if (!ResizeParts(part, ShareOf(size, balloon.parts.size()), came)) return false;
  }
  const int more = balloon.parts.empty() ? size - balloon.own.size() : 0;
  if (more == 0) return true;
  if (more > Idle().size()) return false;
  if (more < 0) {
    balloon.own -= cpus_.Shrink(WishOf(balloon), balloon.own, Idle(), -more);
    balloon.grown = CpuSet();
    return true;
  }
  // Row 4 of 12c: the reserved balloon starts with exactly the reserved CPUs.
  const bool start =
      balloon.type->name == "reserved" && balloon.own.empty() && !config_.reserved_cpus.empty();
  const CpuSet added =
      start ? config_.reserved_cpus : cpus_.Grow(WishOf(balloon), balloon.own, Idle(), more);
  balloon.own |= added;
  balloon.grown = came == 0 ? CpuSet() : added;
  balloon.grown_by = came;
  return true;
}

ReferenceBalloon* ReferenceBalloons::Create(const ReferenceContainer& container) {
  method_ = "none";
  const ReferenceType& type = TypeOf(container);
  if (type.max_cpus < 0) return nullptr;
  const size_t before = balloons_.size();
  ReferenceBalloon* const balloon = Choose(type, container);
  if (balloon == nullptr) return nullptr;
  balloon->containers.push_back(container);
  if (!GrowAsNeeded(*balloon, container.key)) {
    balloon->containers.pop_back();
    if (balloons_.size() > before) balloons_.pop_back();
    return nullptr;
  }
  return balloon;
}

void ReferenceBalloons::GiveBack(ReferenceBalloon& balloon, uint64_t gone) {
  const int target = balloon.containers.empty() ? balloon.type->min_cpus : Target(balloon);
  const int fewer = balloon.cpus().size() - SizeAt(balloon, target);
  if (fewer <= 0) return;
  const CpuSet grown = TakeGrown(balloon, gone);
  if (grown.size() == fewer) {
    GiveUp(balloon, grown);
  } else {
    Resize(balloon, target);
  }
}

void ReferenceBalloons::Remove(uint64_t key) {
  for (auto balloon = balloons_.begin(); balloon != balloons_.end(); ++balloon) {
    const size_t gone =
        std::erase_if(balloon->containers,
                      [&](const ReferenceContainer& container) { return container.key == key; });
    if (gone == 0) continue;
    if (balloon->containers.empty() && CountOf(*balloon->type) > balloon->type->min_balloons) {
      balloons_.erase(balloon);
    } else {
      GiveBack(*balloon, key);
    }
    GrowComposites();
    return;
  }
}

// Row 6 of 12c: it grows by the nearest CPUs and gives back the farthest.
bool ReferenceBalloons::Update(uint64_t key, int64_t milli_cpu) {
  const std::list<ReferenceBalloon> before = balloons_;
  ReferenceBalloon& balloon = *Find(key);
  ReferenceContainer& container =
      *std::find_if(balloon.containers.begin(), balloon.containers.end(),
                    [&](const ReferenceContainer& its) { return its.key == key; });
  const bool fewer = milli_cpu <= container.milli_cpu;
  container.milli_cpu = milli_cpu;
  if (fewer) {
    GiveBack(balloon, 0);
    GrowComposites();
    return true;
  }
  if (RoundedUp(balloon.requests()) <= Target(balloon) && GrowAsNeeded(balloon, 0)) return true;
  const ReferenceContainer changed = container;
  balloons_ = before;
  Remove(key);
  if (Create(changed) != nullptr) return true;
  balloons_ = before;
  return false;
}

ReferenceBalloon* ReferenceBalloons::Find(const std::string& name) {
  for (ReferenceBalloon& balloon : balloons_) {
    if (balloon.name() == name) return &balloon;
  }
  return nullptr;
}

ReferenceBalloon* ReferenceBalloons::Find(uint64_t key) {
  for (ReferenceBalloon& balloon : balloons_) {
    for (const ReferenceContainer& container : balloon.containers) {
      if (container.key == key) return &balloon;
    }
  }
  return nullptr;
}

}  // namespace resmgr::test
