// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloon_setup.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr int kUnlimited = std::numeric_limits<int>::max() / 4;
constexpr std::string_view kIsolated = "isolated CPUs";

int Up(int64_t number, int64_t by) {
  return static_cast<int>(std::min<int64_t>((number + by - 1) / by, kUnlimited));
}

// The number at the start of "7/cache/index3".
std::optional<int> LeadingNumber(std::string_view text) {
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<int64_t> number = ParseInt(text.substr(0, end));
  if (!number || *number > CpuSet::kMaxId) return std::nullopt;
  return static_cast<int>(*number);
}

CpuSet CoresOfKind(const Machine& machine, std::string_view kind) {
  CpuSet cpus;
  for (const Cpu& cpu : machine.cpus()) {
    if (cpu.online && ToString(cpu.kind) == kind) cpus.Add(cpu.id);
  }
  return cpus;
}

// The CPUs of all devices that types want, by name, in the order in which they are first mentioned.
std::vector<BalloonHint> WantedDevices(const Machine& machine, const BalloonsOptions& options) {
  std::vector<BalloonHint> devices;
  for (const BalloonType& type : options.types) {
    for (const std::string& path : type.close_to) {
      if (std::ranges::find(devices, path, &BalloonHint::name) != devices.end()) continue;
      CpuSet cpus = CpusNearDevice(machine, path);
      if (!cpus.empty()) devices.push_back({path, std::move(cpus)});
    }
  }
  return devices;
}

// The number of balloons that `instances` means on so many CPUs that are not reserved.
int64_t InstancesOn(const BalloonType& type, int cpus) {
  switch (type.instances.unit) {
    case BalloonInstances::Unit::kBalloons:
      return type.instances.number;
    case BalloonInstances::Unit::kPercent:
      return cpus * type.instances.number / 100 / type.min_cpus;
    case BalloonInstances::Unit::kCpus:
      return std::min<int64_t>(type.instances.number, cpus) / type.min_cpus;
  }
  return 0;
}

void AddClaimType(BalloonsOptions& options) {
  BalloonType type{.name = "claim"};
  while (options.FindType(type.name) >= 0)
    type.name = "dra-" + type.name;
  type.alone = true;
  type.pin_memory = false;
  options.types.push_back(std::move(type));
}

}  // namespace

const CpuSet& CpusNearNode(const NumaNode& node) {
  return node.cpus.empty() ? node.near : node.cpus;
}

CpuSet CpusNearDevice(const Machine& machine, std::string_view path) {
  constexpr std::string_view kNode = "/sys/devices/system/node/node";
  constexpr std::string_view kCpu = "/sys/devices/system/cpu/cpu";
  if (path.starts_with(kNode)) {
    const auto id = LeadingNumber(path.substr(kNode.size()));
    const NumaNode* const node = id ? machine.FindNode(*id) : nullptr;
    return node == nullptr ? CpuSet() : CpusNearNode(*node);
  }
  if (!path.starts_with(kCpu)) return {};
  const auto id = LeadingNumber(path.substr(kCpu.size()));
  const Cpu* const cpu = id ? machine.FindCpu(*id) : nullptr;
  if (cpu == nullptr || !cpu->online) return {};
  const auto names = [path](std::string_view part) {
    return path.find(part) != std::string_view::npos;
  };
  const bool l3 = names("/cache/index3");
  if (l3 && cpu->l3 >= 0) return machine.l3_groups()[static_cast<size_t>(cpu->l3)];
  if (names("/cache/index2")) return machine.l2_groups()[static_cast<size_t>(cpu->l2)];
  return machine.WithSiblings({cpu->id});
}

BalloonSetup::BalloonSetup(const Machine& machine, const CpuSet& available, BalloonsOptions options)
    : machine_(&machine),
      available_(available),
      options_(std::move(options)),
      chooser_(machine, available) {}

StatusOr<BalloonSetup> BalloonSetup::Create(const PolicyContext& context, BalloonsOptions options) {
  CpuSet available = context.available;
  CpuSet offline = context.offline;
  if (options.available) {
    const CpuConstraint& constraint = *options.available;
    const bool all_but = constraint.kind == CpuConstraint::Kind::kAllBut;
    available = all_but ? available - constraint.cpus : available & constraint.cpus;
    offline = all_but ? offline - constraint.cpus : offline & constraint.cpus;
    if (available.empty()) {
      return InvalidArgument("{}: has none of the CPUs {}", constraint.origin,
                             context.available.ToString());
    }
  }
  AddClaimType(options);
  BalloonSetup setup(context.machine, available, std::move(options));
  setup.LeaveOut(offline);
  RESMGR_RETURN_IF_ERROR(setup.Reserve(context));
  RESMGR_RETURN_IF_ERROR(setup.CountInstances());
  RESMGR_RETURN_IF_ERROR(setup.CheckCounts());
  RESMGR_RETURN_IF_ERROR(setup.CheckFixed());
  RESMGR_RETURN_IF_ERROR(setup.CheckRooms());
  setup.MakeRules();
  return setup;
}

// Removes offline CPUs from the lists of types. Their balloons may have as many others.
void BalloonSetup::LeaveOut(const CpuSet& offline) {
  offline_ = offline;
  for (BalloonType& type : options_.types) {
    missing_.push_back(type.cpus.CountCommon(offline));
    type.cpus -= offline;
  }
}

// Sets the CPUs that the balloons of the type `reserved` have from the start.
Status BalloonSetup::Reserve(const PolicyContext& context) {
  const int index = options_.FindType(kReservedType);
  BalloonType& type = options_.types[static_cast<size_t>(index)];
  CpuSet cpus = context.reserved & available_;
  std::string origin = "policy.ReservedResources.CPU";
  if (options_.reserved) {
    const CpuConstraint& constraint = *options_.reserved;
    origin = constraint.origin;
    if (constraint.kind == CpuConstraint::Kind::kQuantity) {
      const int count = Up(constraint.quantity.value, 1000);
      reserved_milli_ = constraint.quantity.value;
      if (type.min_cpus != 0 && type.min_cpus != count) {
        return InvalidArgument("{}: is {} CPUs, and type reserved has minCPUs {}", origin, count,
                               type.min_cpus);
      }
      if (type.max_cpus > 0 && type.max_cpus < count) {
        return InvalidArgument("{}: is {} CPUs, and type reserved has maxCPUs {}", origin, count,
                               type.max_cpus);
      }
      type.min_cpus = count;
      return OkStatus();
    }
    if (constraint.kind == CpuConstraint::Kind::kAllBut) {
      cpus = available_ - constraint.cpus;
    } else {
      cpus = constraint.cpus - offline_;
      const CpuSet outside = cpus - available_;
      if (!outside.empty()) {
        return InvalidArgument("{}: CPUs {} are not among the available ones ({})", origin,
                               outside.ToString(), available_.ToString());
      }
      // All reserved CPUs are offline, so as many others are reserved.
      if (cpus.empty() && !type.own_cpus) {
        type.min_cpus = std::max<int64_t>(type.min_cpus, constraint.cpus.size());
        reserved_milli_ = int64_t{1000} * constraint.cpus.size();
      }
    }
  }
  if (cpus.empty()) return OkStatus();
  if (type.composite()) {
    return InvalidArgument(
        "{}: type reserved has components, and cannot have the CPUs {}; reserve a number of CPUs: "
        "policy.balloons.reservedResources: {{cpu: {}}}",
        origin, cpus.ToString(), cpus.size());
  }
  reserved_milli_ = int64_t{1000} * cpus.size();
  if (!options_.reserved) reserved_milli_ -= context.unreserved.value;
  if (type.own_cpus) return OkStatus();
  type.priority = std::min(type.priority, 1);
  type.cpus = cpus;
  type.own_cpus = true;
  // The reserved balloon may grow beyond its listed CPUs.
  if (type.max_cpus == 0) type.max_cpus = kUnlimited;
  return OkStatus();
}

Status BalloonSetup::CountInstances() {
  const int ordinary = available_.size() - Up(reserved_milli_, 1000);
  for (BalloonType& type : options_.types) {
    std::vector<CpuSet>& parts = instance_parts_.emplace_back();
    int64_t& online = instances_online_.emplace_back();
    const BalloonInstances& instances = type.instances;
    if (instances.number == 0) continue;
    int64_t count = InstancesOn(type, ordinary);
    online = InstancesOn(type, ordinary + offline_.size());
    if (instances.per != BalloonLevel::kNone) {
      // Parts that are wholly offline count, so that the numbers of the others stay.
      parts = PartsAt(*machine_, instances.per, available_ | offline_);
      count *= static_cast<int64_t>(parts.size());
      online *= static_cast<int64_t>(parts.size());
    }
    if (count <= 0 && instances.per == BalloonLevel::kNone) count = std::min<int64_t>(online, 1);
    if (count <= 0) {
      return InvalidArgument(
          "policy.balloons: type {}: instances makes no balloon at all on this "
          "machine",
          type.name);
    }
    type.min_balloons = type.max_balloons = count;
  }
  return OkStatus();
}

// Refuses more balloons that always exist than CPUs: those without CPUs would be made without end.
Status BalloonSetup::CheckCounts() const {
  const int cpus = available_.size() + offline_.size();
  int64_t sum = 0;
  for (const BalloonType& type : options_.types) {
    sum += type.min_balloons;
    if (type.min_balloons <= cpus) continue;
    return InvalidArgument("policy.balloons: type {}: {} balloons are to exist always, on {} CPUs",
                           type.name, type.min_balloons, cpus);
  }
  // The type of claims is not counted.
  if (sum < cpus + types()) return OkStatus();
  return InvalidArgument("policy.balloons: {} balloons are to exist always, on {} CPUs", sum, cpus);
}

Status BalloonSetup::CheckRooms() const {
  for (const BalloonType& type : options_.types) {
    if (type.grow_within == BalloonLevel::kNone) continue;
    int most = 0;
    for (const CpuSet& part : PartsAt(*machine_, type.grow_within, available_))
      most = std::max(most, part.size());
    if (most > 0 && type.max_cpus <= most + offline_.size()) continue;
    const std::string there =
        most == 0 ? "is known of this machine" : fmt::format("has more than {} CPUs", most);
    return InvalidArgument("policy.balloons: type {}: growWithin: no {} {}", type.name,
                           ToString(type.grow_within), there);
  }
  return OkStatus();
}

Status BalloonSetup::CheckFixed() const {
  CpuSet taken;
  for (const BalloonType& type : options_.types) {
    for (const int component : type.components) {
      if (!options_.types[static_cast<size_t>(component)].own_cpus) continue;
      return InvalidArgument(
          "policy.balloons: type {}: component {} has CPUs that only its own balloon gets",
          type.name, options_.types[static_cast<size_t>(component)].name);
    }
    if (!type.own_cpus) continue;
    const CpuSet outside = type.cpus - available_;
    const CpuSet twice = type.cpus & taken;
    if (!outside.empty() || !twice.empty()) {
      return InvalidArgument("policy.balloons: type {}: CPUs {} are {}", type.name,
                             (outside.empty() ? twice : outside).ToString(),
                             outside.empty() ? "those of another type, too" : "not available");
    }
    taken |= type.cpus;
    if (type.instances.per == BalloonLevel::kNone && type.max_balloons > 1) {
      return InvalidArgument(
          "policy.balloons: type {}: only one balloon can have its CPUs (or so many per level)",
          type.name);
    }
  }
  return OkStatus();
}

std::vector<BalloonHint> BalloonSetup::HintsOf(const BalloonType& type,
                                               const std::vector<BalloonHint>& devices) const {
  std::vector<BalloonHint> hints;
  if (!type.cpus.empty()) hints.push_back({"its CPUs", type.cpus});
  for (const std::string& path : type.close_to) {
    CpuSet cpus = CpusNearDevice(*machine_, path);
    if (!cpus.empty()) hints.push_back({fmt::format("close to {}", path), std::move(cpus)});
  }
  const CpuSet& isolated = machine_->isolated();
  if (!isolated.empty() && type.prefer_isolated) hints.push_back({"isolated CPUs", isolated});
  if (!type.core_type.empty()) {
    CpuSet cpus = CoresOfKind(*machine_, type.core_type);
    if (!cpus.empty()) hints.push_back({fmt::format("{} cores", type.core_type), std::move(cpus)});
  }
  if (!isolated.empty() && !type.prefer_isolated) {
    hints.push_back({fmt::format("not on {}", kIsolated), available_ - isolated});
  }
  for (const BalloonHint& device : devices) {
    if (std::ranges::find(type.close_to, device.name) != type.close_to.end()) continue;
    hints.push_back({fmt::format("far from {}", device.name), available_ - device.cpus});
  }
  // The type avoids cores of a kind that other types want and that it does not want itself.
  for (const BalloonType& other : options_.types) {
    if (other.core_type.empty() || other.core_type == type.core_type) continue;
    const CpuSet cpus = CoresOfKind(*machine_, other.core_type);
    const std::string name = fmt::format("not on {} cores", other.core_type);
    if (cpus.empty() || std::ranges::find(hints, name, &BalloonHint::name) != hints.end()) continue;
    hints.push_back({name, available_ - cpus});
  }
  return hints;
}

void BalloonSetup::MakeRules() {
  const std::vector<BalloonHint> devices = WantedDevices(*machine_, options_);
  for (const BalloonType& type : options_.types) {
    keeps_rooms_ |= type.grow_within != BalloonLevel::kNone;
    follows_use_ |= type.follows_use();
    CpuChoiceRules& rules = rules_.emplace_back();
    rules.balance = type.balance;
    rules.spread = type.spread_cores;
    rules.hints = HintsOf(type, devices);
    for (const std::string& name : type.loads) {
      const BalloonLoadClass* const load = options_.FindLoad(name);
      if (load != nullptr && load->overloads) rules.own_loads.push_back(load->level);
    }
    std::ranges::sort(rules.own_loads);
    sharing_.push_back(PartsAt(*machine_, type.share_idle, available_));
  }
}

int BalloonSetup::MinBalloons(int index) const {
  const BalloonType& own = type(index);
  return std::max(static_cast<int>(own.min_balloons), own.own_cpus ? 1 : 0);
}

int BalloonSetup::MaxBalloons(int index) const {
  const BalloonType& own = type(index);
  if (own.own_cpus && own.instances.per == BalloonLevel::kNone) return 1;
  return own.max_balloons == 0 ? kUnlimited : static_cast<int>(own.max_balloons);
}

int BalloonSetup::MostKept(int index) const {
  const int64_t online = instances_online_[static_cast<size_t>(index)];
  return std::max(MaxBalloons(index), static_cast<int>(std::min<int64_t>(online, kUnlimited)));
}

const CpuSet& BalloonSetup::Bounds(int index, int balloon) const {
  const std::vector<CpuSet>& parts = instance_parts_[static_cast<size_t>(index)];
  if (parts.empty()) return available_;
  const auto part = static_cast<size_t>(balloon / type(index).instances.number);
  return parts[std::min(part, parts.size() - 1)];
}

CpuSet BalloonSetup::Fixed(int index, int balloon) const {
  const BalloonType& own = type(index);
  if (!own.own_cpus) return {};
  return own.cpus & Bounds(index, balloon);
}

int BalloonSetup::MinCpus(int index, int balloon) const {
  return std::max(static_cast<int>(type(index).min_cpus), Fixed(index, balloon).size());
}

int BalloonSetup::MaxCpus(int index, int balloon) const {
  const BalloonType& own = type(index);
  if (own.max_cpus < 0) return 0;
  if (!own.own_cpus) return own.max_cpus == 0 ? kUnlimited : static_cast<int>(own.max_cpus);
  if (own.max_cpus > 0)
    return std::max(static_cast<int>(own.max_cpus), Fixed(index, balloon).size());
  return MinCpus(index, balloon) + missing_[static_cast<size_t>(index)];
}

int64_t BalloonSetup::allocatable_milli() const {
  const int64_t all = int64_t{1000} * available_.size();
  return reserved_milli_ < all ? all - reserved_milli_ : all;
}

// The number of rooms for balloons of the type if no CPU is offline. CPUs that were always offline
// may be in any part of the machine.
int BalloonSetup::RoomsOnline(const BalloonType& type) const {
  const CpuSet all = available_ | offline_;
  const std::vector<CpuSet> parts = PartsAt(*machine_, type.grow_within, all);
  CpuSet unknown = offline_;
  for (const CpuSet& part : parts)
    unknown -= part;
  int rooms = 0;
  for (const CpuSet& part : parts)
    rooms += (part.size() + unknown.size()) / static_cast<int>(type.max_cpus);
  return rooms;
}

bool BalloonSetup::FitsOnline() const {
  int64_t needed = 0;
  for (int index = 0; index < types(); ++index) {
    const BalloonType& own = type(index);
    const bool keeps_room = own.grow_within != BalloonLevel::kNone;
    if (keeps_room && MinBalloons(index) > RoomsOnline(own)) return false;
    for (int balloon = 0; balloon < MinBalloons(index); ++balloon) {
      const int size = WholeSize(index, MinCpus(index, balloon));
      needed += keeps_room ? MaxCpus(index, balloon) : size;
    }
  }
  return !offline_.empty() && needed <= available_.size() + offline_.size();
}

int BalloonSetup::WholeSize(int index, int cpus) const {
  const BalloonType& own = type(index);
  if (!own.composite()) return cpus;
  // Such a balloon has one of the components. The first one stands for all of them, since their
  // sizes differ only if the components do.
  if (own.balance_components) {
    const int first = own.components.front();
    return WholeSize(first, ShareOf(first, cpus, 1));
  }
  int sum = 0;
  for (const int component : own.components)
    sum += WholeSize(component, ShareOf(component, cpus, own.components.size()));
  return sum;
}

int BalloonSetup::ShareOf(int component, int cpus, size_t count) const {
  return std::max(Up(cpus, static_cast<int>(count)), MinCpus(component, 0));
}

int BalloonSetup::CpusFor(int index, int64_t milli_cpu) const {
  return Up(std::max<int64_t>(milli_cpu, 1) * 100, 1000 * type(index).overcommit_percent);
}

}  // namespace resmgr
