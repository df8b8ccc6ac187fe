// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/rdt_masks.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr uint64_t kWhole = 100;
// AMD's bandwidth in eighths of GB/s: the value for no limit, and what koordlet counts as 100 %,
// namely 80 % of 25 GB/s.
constexpr uint64_t kUnlimitedEighths = 2048;
constexpr uint64_t kEighthsOfAll = 160;
constexpr uint64_t kMbpsOfGbps = 1000;
constexpr uint64_t kEighths = 8;
constexpr int kMaskBase = 16;

using Masks = std::map<std::string, uint64_t, std::less<>>;  // by partition

uint64_t LowBits(uint64_t count) {
  return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}
uint64_t BitsBetween(uint64_t first, uint64_t last) {
  return LowBits(last + 1) & ~LowBits(first);
}

// One mask of a cache: `type` is "unified", "code" or "data".
struct CacheLine {
  std::string_view level;  // "L3"
  std::string_view type;
  const RdtCache& cache;
  RdtAllocation<CacheParts> RdtAllocations::*of;

  std::string name() const {
    return type == "unified" ? std::string(level)
                             : fmt::format("{}{}", level, type == "code" ? "CODE" : "DATA");
  }
  // Code and data without a value of their own have the unified value.
  const CachePart& PartOf(const CacheParts& parts) const {
    if (type == "code" && parts.code) return *parts.code;
    if (type == "data" && parts.data) return *parts.data;
    return parts.unified;
  }
  uint64_t bits() const { return static_cast<uint64_t>(std::popcount(cache.mask)); }
};

Status CheckMask(const CacheLine& line, uint64_t mask) {
  if (mask == 0) return InvalidArgument("bitmask 0x0 has no bit");
  const uint64_t shifted = mask >> std::countr_zero(mask);
  if (!line.cache.sparse && (shifted & (shifted + 1)) != 0)
    return InvalidArgument("bitmask {:#x} has more than one continuous block of ones", mask);
  const auto count = static_cast<uint32_t>(std::popcount(mask));
  if (count < line.cache.min_bits)
    return InvalidArgument("bitmask {:#x} has {} bits, and {} are the least", mask, count,
                           line.cache.min_bits);
  return OkStatus();
}

// Widens [first, last] to at least `least` bits, downwards first.
uint64_t Widened(uint64_t first, uint64_t last, uint64_t bits, uint64_t least) {
  least = std::min(least, bits);
  while (last - first + 1 < least && first > 0)
    --first;
  while (last - first + 1 < least && last + 1 < bits)
    ++last;
  return BitsBetween(first, last);
}

// Computes the masks of all partitions of one cache.
class PartitionLayout {
 public:
  PartitionLayout(const CacheLine& line, uint32_t id) : line_(line), id_(id) {}

  StatusOr<Masks> LayOut(const std::map<std::string, RdtPartitionConfig, std::less<>>& partitions) {
    size_t given = 0;
    size_t named = 0;
    for (const auto& [name, partition] : partitions) {
      const RdtAllocation<CacheParts>& allocation = partition.allocations.*line_.of;
      if (allocation.given()) ++given;
      const CacheParts* const parts = allocation.Find(id_);
      if (parts != nullptr) ++named;
      if (!allocation.given()) missing_.push_back(name);
      parts_.emplace_back(name, parts == nullptr ? kAllOfIt : line_.PartOf(*parts));
    }
    Masks masks;
    if (given == 0 || (named == 0 && missing_.empty())) {
      for (const auto& [name, part] : parts_)
        masks[name] = line_.cache.mask;
      return masks;
    }
    if (!missing_.empty())
      return InvalidArgument("some partitions ({}) missing {} \"{}\" allocation request",
                             fmt::join(missing_, ", "), line_.level, line_.type);
    for (const auto& [name, part] : parts_) {
      if (part.index() != parts_.front().second.index())
        return InvalidArgument(
            "mixing relative and absolute {} \"{}\" allocations between partitions is not "
            "supported (cache {})",
            line_.level, line_.type, id_);
    }
    if (std::holds_alternative<CachePercent>(parts_.front().second)) return Shares();
    return Fixed();
  }

 private:
  static constexpr CachePart kAllOfIt = CachePercent{kWhole};

  StatusOr<Masks> Fixed() {
    Masks masks;
    uint64_t taken = 0;
    for (const auto& [name, part] : parts_) {
      if (const auto* const range = std::get_if<CacheRange>(&part)) {
        // As koordlet rounds: from the first way that begins in the range to the last one that
        // begins in it.
        const uint64_t first = (line_.bits() * range->first + kWhole - 1) / kWhole;
        const uint64_t end = (line_.bits() * range->last + kWhole - 1) / kWhole;
        if (first >= end)
          return InvalidArgument("partition \"{}\": {}-{}% of {} bits of {} are none", name,
                                 range->first, range->last, line_.bits(), line_.level);
        masks[name] = Widened(first, end - 1, line_.bits(), line_.cache.min_bits);
        continue;
      }
      const uint64_t mask = std::get<CacheBits>(part).mask;
      const Status valid = CheckMask(line_, mask);
      if (!valid.ok()) return Annotate(valid, fmt::format("partition \"{}\"", name));
      if ((mask & ~line_.cache.mask) != 0)
        return InvalidArgument("partition \"{}\": bitmask {:#x} does not fit basemask {:#x}", name,
                               mask, line_.cache.mask);
      if ((mask & taken) != 0)
        return InvalidArgument(
            "overlapping {} partition allocations: \"{}\" has bits of another "
            "one ({:#x})",
            line_.level, name, mask & taken);
      taken |= mask;
      masks[name] = mask;
    }
    return masks;
  }

  StatusOr<Masks> Shares() {
    uint64_t percents = 0;
    for (const auto& [name, part] : parts_)
      percents += std::get<CachePercent>(part).percent;
    if (percents > kWhole)
      return InvalidArgument(
          "accumulated {} \"{}\" allocation of all partitions is {}%, which is "
          "more than 100% (cache {})",
          line_.level, line_.type, percents, id_);
    const uint64_t total = percents * line_.bits() / kWhole;
    const uint64_t least = line_.cache.min_bits;
    if (total < parts_.size() * least)
      return InvalidArgument(
          "{}% of {} bits of {} are {}, too few for {} partitions of at least {} "
          "(cache {})",
          percents, line_.bits(), line_.level, total, parts_.size(), least, id_);
    std::vector<std::pair<uint32_t, std::string_view>> ascending;
    for (const auto& [name, part] : parts_)
      ascending.emplace_back(std::get<CachePercent>(part).percent, name);
    std::ranges::sort(ascending);
    uint64_t left = total;
    std::map<std::string_view, uint64_t> sizes;
    for (const auto& [percent, name] : ascending) {
      const uint64_t available = std::max<uint64_t>(left * percents / total, 1);
      uint64_t size = std::min(std::max(percent * left / available, least), left);
      if (name == ascending.back().second) size = left;
      if (size < least)
        return InvalidArgument(
            "not enough bits of {} for partition \"{}\": {} are left of {}, and "
            "{} are the least (cache {})",
            line_.level, name, left, total, least, id_);
      sizes[name] = size;
      left -= size;
    }
    Masks masks;
    uint64_t first = 0;
    for (const auto& [name, part] : parts_) {
      masks[name] = BitsBetween(first, first + sizes[name] - 1);
      first += sizes[name];
    }
    return masks;
  }

  const CacheLine& line_;
  const uint32_t id_;
  std::vector<std::string> missing_;
  std::vector<std::pair<std::string, CachePart>> parts_;  // in the order of the names
};

// The mask of a class within that of its partition.
StatusOr<uint64_t> ClassMask(const CacheLine& line, uint64_t base, const CachePart& part) {
  const auto shift = static_cast<uint64_t>(std::countr_zero(base));
  const auto bits = static_cast<uint64_t>(std::popcount(base));
  const auto relative = [&](uint64_t first, uint64_t last) {
    first = std::max<uint64_t>(first, 1);
    return Widened((first - 1) * bits / kWhole, (last - 1) * bits / kWhole, bits,
                   line.cache.min_bits)
           << shift;
  };
  if (const auto* const percent = std::get_if<CachePercent>(&part)) {
    if (percent->percent == 0) return InvalidArgument("0% of a cache is empty");
    return relative(1, percent->percent);
  }
  if (const auto* const range = std::get_if<CacheRange>(&part)) {
    if (range->last == 0) return InvalidArgument("0-0% of a cache is empty");
    return relative(range->first, range->last);
  }
  const uint64_t mask = std::get<CacheBits>(part).mask;
  RESMGR_RETURN_IF_ERROR(CheckMask(line, mask));
  const uint64_t shifted = mask << shift;
  if (shifted >> shift != mask || (shifted & ~base) != 0)
    return InvalidArgument("bitmask {:#x} ({:#x} << {}) does not fit basemask {:#x}", shifted, mask,
                           shift, base);
  return shifted;
}

std::string KeyOf(std::string_view class_name) {
  return IsRdtRoot(class_name) ? std::string() : std::string(class_name);
}

Status AddCacheLine(const CacheLine& line, const RdtConfig& config, RdtClassSchemata& all) {
  for (const uint32_t id : line.cache.ids) {
    RESMGR_ASSIGN_OR_RETURN(const Masks masks, PartitionLayout(line, id).LayOut(config.partitions));
    for (const auto& [name, partition] : config.partitions) {
      const uint64_t base = masks.at(name);
      for (const auto& [class_name, one] : partition.classes) {
        const CacheParts* const parts = (one.allocations.*line.of).Find(id);
        uint64_t mask = base;
        if (parts != nullptr) {
          const StatusOr<uint64_t> own = ClassMask(line, base, line.PartOf(*parts));
          if (!own.ok())
            return Annotate(own.status(), fmt::format("class \"{}\": {} \"{}\"", class_name,
                                                      line.level, line.type));
          mask = *own;
        }
        all[KeyOf(class_name)][line.name()][id] = mask;
      }
    }
  }
  return OkStatus();
}

StatusOr<uint64_t> BandwidthOf(const RdtBandwidth& machine, const BandwidthPart* partition,
                               const BandwidthPart* own) {
  using Unit = RdtBandwidth::Unit;
  const bool mbps = machine.unit == Unit::kMbps;
  for (const BandwidthPart* const part : {partition, own}) {
    if (part == nullptr) continue;
    if (mbps && !part->mbps) return InvalidArgument("missing 'MBps' value");
    if (!mbps && !part->percent) return InvalidArgument("missing '%' value");
  }
  if (mbps)
    return std::min(partition == nullptr ? kUnlimitedMbps : *partition->mbps,
                    own == nullptr ? kUnlimitedMbps : *own->mbps);
  const uint64_t percent = (partition == nullptr ? kWhole : *partition->percent) *
                           (own == nullptr ? kWhole : *own->percent) / kWhole;
  if (machine.unit == Unit::kPercent) return std::max<uint64_t>(percent, machine.least);
  // Absolute values can only lower the result of the percentages.
  uint64_t eighths = percent == kWhole ? kUnlimitedEighths : percent * kEighthsOfAll / kWhole;
  for (const BandwidthPart* const part : {partition, own})
    if (part != nullptr && part->mbps)
      eighths = std::min(eighths, *part->mbps * kEighths / kMbpsOfGbps);
  return std::max<uint64_t>(eighths, std::max<uint32_t>(machine.least, 1));
}

Status AddBandwidth(const RdtBandwidth& machine, const RdtConfig& config, RdtClassSchemata& all) {
  for (const auto& [name, partition] : config.partitions) {
    for (const auto& [class_name, one] : partition.classes) {
      for (const uint32_t id : machine.ids) {
        const StatusOr<uint64_t> value =
            BandwidthOf(machine, partition.allocations.mb.Find(id), one.allocations.mb.Find(id));
        if (!value.ok())
          return Annotate(value.status(),
                          fmt::format("class \"{}\": memory bandwidth", class_name));
        all[KeyOf(class_name)]["MB"][id] = *value;
      }
    }
  }
  return OkStatus();
}

// Checks that a class sets only what its partition sets, and both only what the machine supports.
template <typename Allocation>
Status CheckSupport(std::string_view what, Allocation RdtAllocations::*of, bool supported,
                    bool optional, const RdtConfig& config) {
  const auto unsupported = [what](std::string_view name) {
    return InvalidArgument(
        "{} allocation for \"{}\" specified in configuration but not supported by system", what,
        name);
  };
  for (const auto& [name, partition] : config.partitions) {
    const bool given = (partition.allocations.*of).given();
    if (given && !supported && !optional) return unsupported(name);
    for (const auto& [class_name, one] : partition.classes) {
      if (!(one.allocations.*of).given()) continue;
      if (!supported && !optional) return unsupported(class_name);
      if (!given)
        return InvalidArgument("{} allocation for \"{}\" missing from its partition \"{}\"", what,
                               class_name, name);
    }
  }
  return OkStatus();
}

Status AddCache(std::string_view level, const RdtCache& cache,
                RdtAllocation<CacheParts> RdtAllocations::*of, const RdtConfig& config,
                RdtClassSchemata& all) {
  if (!cache.split) return AddCacheLine({level, "unified", cache, of}, config, all);
  RESMGR_RETURN_IF_ERROR(AddCacheLine({level, "code", cache, of}, config, all));
  return AddCacheLine({level, "data", cache, of}, config, all);
}

}  // namespace

StatusOr<RdtClassSchemata> ComputeRdt(const RdtConfig& config, const RdtMachine& machine) {
  RESMGR_RETURN_IF_ERROR(CheckSupport("L2 cache", &RdtAllocations::l2, machine.l2.has_value(),
                                      config.l2_optional, config));
  RESMGR_RETURN_IF_ERROR(CheckSupport("L3 cache", &RdtAllocations::l3, machine.l3.has_value(),
                                      config.l3_optional, config));
  RESMGR_RETURN_IF_ERROR(
      CheckSupport("MB", &RdtAllocations::mb, machine.mb.has_value(), config.mb_optional, config));
  RdtClassSchemata all;
  for (const auto& [name, partition] : config.partitions)
    for (const auto& [class_name, one] : partition.classes)
      all[KeyOf(class_name)];
  if (machine.l2)
    RESMGR_RETURN_IF_ERROR(AddCache("L2", *machine.l2, &RdtAllocations::l2, config, all));
  if (machine.l3)
    RESMGR_RETURN_IF_ERROR(AddCache("L3", *machine.l3, &RdtAllocations::l3, config, all));
  if (machine.mb) RESMGR_RETURN_IF_ERROR(AddBandwidth(*machine.mb, config, all));
  return all;
}

void RoundBandwidth(const RdtBandwidth& machine, RdtSchemata& schemata) {
  const auto found = schemata.find("MB");
  // MBps limits are enforced by software, so the hardware's step does not apply to them.
  if (found == schemata.end() || machine.unit == RdtBandwidth::Unit::kMbps || machine.step == 0)
    return;
  for (auto& [id, value] : found->second)
    value = (value + machine.step - 1) / machine.step * machine.step;
}

std::string SchemataText(const RdtSchemata& schemata) {
  std::string text;
  for (const auto& [resource, values] : schemata) {
    std::string line;
    for (const auto& [id, value] : values) {
      const bool decimal = resource.starts_with("MB") || resource.starts_with("SMBA");
      line += fmt::format("{}{}={}", line.empty() ? "" : ";", id,
                          decimal ? fmt::format("{}", value) : fmt::format("{:x}", value));
    }
    text += fmt::format("{}:{}\n", resource, line);
  }
  return text;
}

RdtSchemata ParseSchemata(std::string_view text) {
  RdtSchemata schemata;
  for (const std::string_view line : Split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string resource(Trim(line.substr(0, colon)));
    const bool decimal = resource.starts_with("MB") || resource.starts_with("SMBA");
    for (const std::string_view pair : Split(line.substr(colon + 1), ';')) {
      const size_t equals = pair.find('=');
      if (equals == std::string_view::npos) continue;
      const std::optional<uint64_t> id = ParseUint(Trim(pair.substr(0, equals)));
      const std::optional<uint64_t> value =
          ParseUint(Trim(pair.substr(equals + 1)), decimal ? 10 : kMaskBase);
      if (!id || *id > std::numeric_limits<uint32_t>::max() || !value) continue;
      schemata[resource][static_cast<uint32_t>(*id)] = *value;
    }
  }
  return schemata;
}

const uint64_t* FindSchema(const RdtSchemata& schemata, std::string_view resource, uint32_t id) {
  const auto found = schemata.find(resource);
  if (found == schemata.end()) return nullptr;
  const auto value = found->second.find(id);
  return value == found->second.end() ? nullptr : &value->second;
}

RdtSchemata SchemataOfPresent(const RdtSchemata& wanted, const RdtSchemata& now) {
  RdtSchemata present;
  for (const auto& [resource, values] : wanted)
    for (const auto& [id, value] : values)
      if (FindSchema(now, resource, id) != nullptr) present[resource][id] = value;
  return present;
}

bool HasSchemata(const RdtSchemata& wanted, const RdtSchemata& now) {
  for (const auto& [resource, values] : wanted) {
    if (!now.contains(resource)) return false;
    for (const auto& [id, value] : values) {
      const uint64_t* const has = FindSchema(now, resource, id);
      if (has != nullptr && *has != value) return false;
    }
  }
  return true;
}

}  // namespace resmgr
