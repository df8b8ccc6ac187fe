// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/cpu_machine.h"

namespace resmgr {
namespace {

constexpr std::string_view kCpuKind = "cpu";
constexpr std::string_view kCpuWay = "by CPU";
constexpr const char* kPerformance = "performance";
constexpr const char* kNoTurbo = "sys/devices/system/cpu/intel_pstate/no_turbo";
constexpr const char* kBoostOfAll = "sys/devices/system/cpu/cpufreq/boost";

// CPUs that get a class.
struct CpuUse {
  const CpuClassConfig* cpu_class = nullptr;
  CpuSet cpus{};
  size_t part = 0;      // index of its part in the plan
  bool active = false;  // containers run there
  size_t owner = 0;     // the use whose class the CPUs get: a pool's, or this one
};

class CpuPlanner {
 public:
  CpuPlanner(const ClassWork& work, ClassPlan& plan)
      : work_(work), config_(work.config.cpu), machine_(work.host), plan_(plan) {}

  void Plan() {
    FindPools();
    FindSubjects();
    FindPriorities();
    CpuSet done;
    for (const auto& [cpu, use] : use_of_) {
      if (done.Contains(cpu)) continue;
      const CpuSet cpus = machine_.ClockOf(cpu) & online_;
      done |= cpus;
      PlanClock(cpus);
    }
    for (const auto& [cpu, use] : use_of_)
      PlanIdle(cpu, *uses_[use].cpu_class);
    PlanUncore();
    PlanBoostOfAll();
    FinishParts();
    PlanConfigured();
  }

 private:
  using Boost = CpuClassConfig::Boost;

  size_t AddUse(const CpuClassConfig& cpu_class, const CpuSet& cpus, ClassPart part) {
    part.kind = kCpuKind;
    part.name = cpu_class.name;
    part.way = kCpuWay;
    plan_.parts.push_back(std::move(part));
    uses_.push_back({.cpu_class = &cpu_class,
                     .cpus = cpus & online_,
                     .part = plan_.parts.size() - 1,
                     .owner = uses_.size()});
    return uses_.size() - 1;
  }
  void Take(size_t use) {
    for (const int cpu : uses_[use].cpus)
      use_of_[cpu] = use;
  }
  void FindPools() {
    for (const ClassPool& pool : work_.pools) {
      const auto named = pool.classes.find(kCpuKind);
      if (named == pool.classes.end()) continue;
      const CpuClassConfig* const found = config_.Find(named->second);
      if (found == nullptr) continue;
      pools_[pool.name] = AddUse(*found, pool.cpus, {.source = fmt::format("pool {}", pool.name)});
      Take(pools_[pool.name]);
    }
  }
  // The use of the pool whose class the container has; nullptr if the class is the container's own.
  const size_t* PoolOf(const ClassSubject& subject, const ClassChoice& choice) const {
    if (choice.by_pod || !subject.cpus.empty()) return nullptr;
    const auto own = pools_.find(subject.pool);
    if (own != pools_.end()) return &own->second;
    // The container's own pool has no class: it lies within a larger pool that has it.
    for (const auto& [name, use] : pools_)
      if (uses_[use].cpu_class->name == choice.name) return &use;
    return nullptr;
  }
  void FindSubjects() {
    for (size_t i = 0; i < work_.subjects.size(); ++i) {
      const ClassSubject& subject = work_.subjects[i];
      const ClassChoice* const choice = subject.chosen.Find(kCpuKind);
      const CpuClassConfig* const found = choice == nullptr ? nullptr : config_.Find(choice->name);
      if (found == nullptr) continue;
      const size_t* const pool = PoolOf(subject, *choice);
      const CpuSet cpus = pool == nullptr ? subject.cpus : uses_[*pool].cpus;
      const size_t use = AddUse(*found, cpus, {.subject = i, .source = choice->source});
      uses_[use].active = true;
      if (pool != nullptr) {
        uses_[use].owner = *pool;
        uses_[*pool].active = true;
      } else if (cpus.empty()) {
        plan_.parts[uses_[use].part].possible =
            FailedPrecondition("the container has no CPUs of its own");
      } else {
        Take(use);
      }
    }
  }

  int DomainOf(int cpu) {
    return config_.turbo_domain == CpuClassesConfig::TurboDomain::kSystem ? 0
                                                                          : machine_.PackageOf(cpu);
  }
  void FindPriorities() {
    for (const auto& [cpu, use] : use_of_) {
      const int domain = DomainOf(cpu);
      domain_of_[cpu] = domain;
      if (!uses_[use].active) continue;
      int64_t& highest = priorities_[domain];
      highest = std::max(highest, uses_[use].cpu_class->turbo_priority);
    }
  }
  bool MayTurbo(int cpu) const {
    const auto highest = priorities_.find(domain_of_.at(cpu));
    return highest == priorities_.end() || highest->second == 0 ||
           uses_[use_of_.at(cpu)].cpu_class->turbo_priority == highest->second;
  }

  void Fail(const CpuSet& cpus, const Status& why) {
    for (const int cpu : cpus)
      problems_.try_emplace(cpu, why);
  }
  void Value(const CpuSet& cpus, const std::string& path, std::string text) {
    const StatusOr<std::string> there = work_.host.files().Read(path);
    if (!there.ok()) return Fail(cpus, there.status());
    plan_.Add({path, std::move(text)});
    for (const int cpu : cpus)
      paths_[cpu].push_back(path);
  }

  // Plans one clock, which one CPU or several have.
  void PlanClock(const CpuSet& cpus) {
    std::vector<const CpuClassConfig*> classes;
    CpuSet managed;
    for (const int cpu : cpus) {
      const auto use = use_of_.find(cpu);
      if (use == use_of_.end()) continue;
      managed.Add(cpu);
      const CpuClassConfig* const one = uses_[use->second].cpu_class;
      if (std::ranges::find(classes, one) == classes.end()) classes.push_back(one);
    }
    const bool wants = std::ranges::any_of(classes, [](const CpuClassConfig* one) {
      return one->min_freq != ClockRate() || one->max_freq != ClockRate() ||
             !one->governor.empty() || !one->energy.empty() || one->boost != Boost::kLeave;
    });
    if (!wants) return;
    if (managed != cpus) {
      const int other = (cpus - managed).First();
      return Fail(managed, FailedPrecondition("CPU {} has its clock in common with CPU {}, which "
                                              "has no class",
                                              managed.First(), other));
    }
    PlanRates(cpus);
    PlanGovernor(cpus, classes);
    PlanBoost(cpus, classes);
  }

  // The highest rate that a class of these CPUs wants; nullopt if a class leaves the rate as it is.
  std::optional<int64_t> Highest(const CpuSet& cpus, ClockRate CpuClassConfig::*rate) {
    std::optional<int64_t> highest;
    for (const int cpu : cpus) {
      const ClockRate& wanted = uses_[use_of_.at(cpu)].cpu_class->*rate;
      if (wanted.kind == ClockRate::Kind::kLeave) continue;
      const std::optional<int64_t> one = machine_.RateOf(wanted, cpu, MayTurbo(cpu));
      if (!one) {
        Fail({cpu}, NotFound("there is no {}", CpuFile(cpu, "cpufreq/cpuinfo_max_freq")));
        continue;
      }
      highest = std::max(highest.value_or(*one), *one);
    }
    return highest;
  }
  void PlanRates(const CpuSet& cpus) {
    const std::string directory = CpuFile(cpus.First(), "cpufreq/");
    AddRates(cpus, directory + "scaling_min_freq", directory + "scaling_max_freq",
             Highest(cpus, &CpuClassConfig::min_freq), Highest(cpus, &CpuClassConfig::max_freq));
  }
  // Writes the least and the highest rate in the order that keeps the least below the highest.
  void AddRates(const CpuSet& cpus, const std::string& min_path, const std::string& max_path,
                std::optional<int64_t> min, std::optional<int64_t> max) {
    if (!min && !max) return;
    const std::optional<int64_t> first_min = machine_.FirstNumber(min_path);
    const std::optional<int64_t> first_max = machine_.FirstNumber(max_path);
    if (min && max) *min = std::min(*min, *max);
    if (!min && first_min && *first_min > *max) min = max;
    if (!max && first_max && *first_max < *min) max = min;
    const int64_t min_now = machine_.NumberNow(min_path).value_or(0);
    const auto add = [&](const std::string& path, const std::optional<int64_t>& rate) {
      if (rate) Value(cpus, path, fmt::format("{}", *rate));
    };
    if (max && *max < min_now) {
      add(min_path, min);
      add(max_path, max);
    } else {
      add(max_path, max);
      add(min_path, min);
    }
  }

  // The word that the classes of these CPUs name; "" if none names one. Fails if they name
  // different words.
  std::string Common(const CpuSet& cpus, const std::vector<const CpuClassConfig*>& classes,
                     std::string CpuClassConfig::*word, std::string_view what) {
    std::set<std::string> words;
    for (const CpuClassConfig* const one : classes)
      if (!(one->*word).empty()) words.insert(one->*word);
    if (words.size() > 1)
      Fail(cpus,
           FailedPrecondition("CPUs {} have one clock, and their classes name different {}: {}",
                              cpus.ToString(), what, fmt::join(words, ", ")));
    return words.size() == 1 ? *words.begin() : "";
  }
  void PlanGovernor(const CpuSet& cpus, const std::vector<const CpuClassConfig*>& classes) {
    const std::string directory = CpuFile(cpus.First(), "cpufreq/");
    const std::string path = directory + "scaling_governor";
    std::string governor = Common(cpus, classes, &CpuClassConfig::governor, "governors");
    const std::string energy = Common(cpus, classes, &CpuClassConfig::energy, "energy preferences");
    if (!governor.empty()) {
      const Status listed =
          machine_.CheckListed(cpus.First(), kGovernorsFile, "governor", governor);
      if (!listed.ok()) {
        Fail(cpus, listed);
        governor.clear();
      }
    }
    const std::string now = machine_.TextNow(path);
    // The first value for a file counts, and isolation, which is planned earlier, may have set it.
    const auto taken = std::ranges::find(plan_.values, path, &HostValue::path);
    const std::string then =
        taken != plan_.values.end() ? taken->text : (governor.empty() ? now : governor);
    const bool governor_first = now == kPerformance && then != kPerformance;
    if (governor_first && !governor.empty()) Value(cpus, path, governor);
    if (!energy.empty()) PlanEnergy(cpus, directory, energy, then);
    if (!governor_first && !governor.empty()) Value(cpus, path, governor);
  }
  void PlanEnergy(const CpuSet& cpus, const std::string& directory, const std::string& energy,
                  const std::string& governor) {
    const bool fixed = governor == kPerformance &&
                       machine_.TextNow(directory + "scaling_driver").starts_with("intel_pstate");
    if (fixed) {
      if (energy != kPerformance && energy != "0")
        Fail(cpus, FailedPrecondition("under the governor performance the kernel keeps the energy "
                                      "preference performance, and refuses {}",
                                      energy));
      return;
    }
    const Status listed =
        machine_.CheckListed(cpus.First(), "cpufreq/energy_performance_available_preferences",
                             "energy preference", energy);
    if (!ParseInt(energy) && !listed.ok()) return Fail(cpus, listed);
    Value(cpus, directory + "energy_performance_preference", energy);
  }

  void PlanBoost(const CpuSet& cpus, const std::vector<const CpuClassConfig*>& classes) {
    const bool on = std::ranges::any_of(
        classes, [](const CpuClassConfig* one) { return one->boost == Boost::kOn; });
    const bool off = std::ranges::any_of(
        classes, [](const CpuClassConfig* one) { return one->boost == Boost::kOff; });
    if (!on && !off) return;
    const std::string path = CpuFile(cpus.First(), "cpufreq/boost");
    const bool own = !machine_.TextNow(path).empty();
    if (!own) {
      (on ? boost_on_ : boost_off_) |= cpus;
    } else if (on && off) {
      Fail(cpus, FailedPrecondition("CPUs {} have one clock, and only some of their classes want "
                                    "boost",
                                    cpus.ToString()));
    } else {
      Value(cpus, path, on ? "1" : "0");
    }
  }
  // Plans the boost switch of machines that have one switch for all CPUs.
  void PlanBoostOfAll() {
    const CpuSet cpus = boost_on_ | boost_off_;
    if (cpus.empty()) return;
    if (!boost_on_.empty() && !boost_off_.empty())
      return Fail(cpus, FailedPrecondition("the machine has one switch for boost, and the classes "
                                           "in use want it on and off"));
    const bool on = !boost_on_.empty();
    if (!machine_.TextNow(kNoTurbo).empty()) return Value(cpus, kNoTurbo, on ? "0" : "1");
    Value(cpus, kBoostOfAll, on ? "1" : "0");
  }

  void PlanIdle(int cpu, const CpuClassConfig& wanted) {
    if (wanted.disabled_cstates.empty() && !wanted.max_latency_us) return;
    const std::vector<IdleState> states = machine_.IdleStatesOf(cpu);
    if (states.empty()) return Fail({cpu}, NotFound("there is no {}", CpuFile(cpu, "cpuidle")));
    for (const IdleState& state : states) {
      const bool named = std::ranges::any_of(
          wanted.disabled_cstates,
          [&state](const std::string& name) { return EqualsIgnoreCase(name, state.name); });
      const bool slow = wanted.max_latency_us && state.latency_us > *wanted.max_latency_us;
      if (named || slow) Value({cpu}, state.directory + "/disable", "1");
    }
  }

  void PlanUncore() {
    CpuSet wanting;
    for (const auto& [cpu, use] : use_of_) {
      const CpuClassConfig& one = *uses_[use].cpu_class;
      if (one.uncore_min_freq != ClockRate() || one.uncore_max_freq != ClockRate())
        wanting.Add(cpu);
    }
    if (wanting.empty()) return;
    CpuSet found;
    for (const UncoreClock& clock : machine_.UncoreClocks()) {
      CpuSet cpus;
      std::optional<int64_t> min;
      std::optional<int64_t> max;
      for (const int cpu : wanting) {
        if (machine_.PackageOf(cpu) != clock.package) continue;
        if (clock.die && machine_.DieOf(cpu) != *clock.die) continue;
        cpus.Add(cpu);
        const CpuClassConfig& one = *uses_[use_of_.at(cpu)].cpu_class;
        const auto raise = [](std::optional<int64_t>& highest, std::optional<int64_t> rate) {
          if (rate) highest = std::max(highest.value_or(*rate), *rate);
        };
        raise(min, machine_.RateOf(one.uncore_min_freq, clock));
        raise(max, machine_.RateOf(one.uncore_max_freq, clock));
      }
      found |= cpus;
      if (cpus.empty()) continue;
      AddRates(cpus, clock.directory + "/min_freq_khz", clock.directory + "/max_freq_khz", min,
               max);
    }
    Fail(wanting - found,
         NotFound("there is no sys/devices/system/cpu/intel_uncore_frequency for these CPUs"));
  }

  void FinishParts() {
    for (const CpuUse& use : uses_) {
      ClassPart& part = plan_.parts[use.part];
      std::set<std::string> paths;
      for (const int cpu : use.cpus) {
        // Skips CPUs of the pool that a container has for itself.
        if (use_of_.at(cpu) != use.owner) continue;
        const auto problem = problems_.find(cpu);
        if (problem != problems_.end() && part.possible.ok()) part.possible = problem->second;
        const auto known = paths_.find(cpu);
        if (known != paths_.end()) paths.insert(known->second.begin(), known->second.end());
      }
      part.paths.assign(paths.begin(), paths.end());
    }
    // Parts of containers report the class of their pool, so the pool's own part is dropped.
    std::set<size_t> silent;
    for (const auto& [name, use] : pools_)
      if (uses_[use].active) silent.insert(uses_[use].part);
    for (auto part = silent.rbegin(); part != silent.rend(); ++part)
      plan_.parts.erase(plan_.parts.begin() + static_cast<std::ptrdiff_t>(*part));
  }
  // Adds parts for all configured classes, even if no container or pool has them.
  void PlanConfigured() {
    for (const CpuClassConfig& one : config_.classes) {
      Status possible = online_.empty() ? OkStatus() : CheckMachineHas(one);
      plan_.parts.push_back({.kind = kCpuKind, .name = one.name, .possible = std::move(possible)});
    }
  }
  // NotFound: the machine lacks something that the class needs.
  Status CheckMachineHas(const CpuClassConfig& wanted) {
    const bool rates = wanted.min_freq != ClockRate() || wanted.max_freq != ClockRate();
    if (rates) RESMGR_RETURN_IF_ERROR(CheckSomeCpuHas("cpufreq/scaling_max_freq"));
    if (!wanted.governor.empty())
      RESMGR_RETURN_IF_ERROR(CheckSomeCpuHas("cpufreq/scaling_governor"));
    if (!wanted.energy.empty())
      RESMGR_RETURN_IF_ERROR(CheckSomeCpuHas("cpufreq/energy_performance_preference"));
    if (wanted.boost != Boost::kLeave && machine_.TextNow(kNoTurbo).empty() &&
        machine_.TextNow(kBoostOfAll).empty())
      RESMGR_RETURN_IF_ERROR(CheckSomeCpuHas("cpufreq/boost"));
    const bool uncore =
        wanted.uncore_min_freq != ClockRate() || wanted.uncore_max_freq != ClockRate();
    if (uncore && machine_.UncoreClocks().empty())
      return NotFound("there is no sys/devices/system/cpu/intel_uncore_frequency");
    if (wanted.disabled_cstates.empty() && !wanted.max_latency_us) return OkStatus();
    for (const int cpu : online_)
      if (!work_.host.files().List(CpuFile(cpu, "cpuidle")).empty()) return OkStatus();
    return NotFound("there is no {}", CpuFile(online_.First(), "cpuidle"));
  }
  // OK if some CPU has the file, else the first CPU's error.
  Status CheckSomeCpuHas(std::string_view file) {
    Status first;
    for (const int cpu : online_) {
      Status there = work_.host.files().Read(CpuFile(cpu, file)).status();
      if (there.ok()) return there;
      if (first.ok()) first = std::move(there);
    }
    return first;
  }

  const ClassWork& work_;
  const CpuClassesConfig& config_;
  CpuMachine machine_;
  ClassPlan& plan_;
  const CpuSet online_ = OnlineCpus(work_.host.files());
  std::vector<CpuUse> uses_;
  std::map<std::string, size_t, std::less<>> pools_;  // indexes of uses, by the pools' names
  std::map<int, size_t> use_of_;                      // indexes of uses, by CPU
  std::map<int, int> domain_of_;
  std::map<int, int64_t> priorities_;  // the highest one in use, by domain
  std::map<int, Status> problems_;     // by CPU
  std::map<int, std::vector<std::string>> paths_;
  CpuSet boost_on_;  // CPUs without a boost switch of their own
  CpuSet boost_off_;
};

class CpuKind final : public ClassKind {
 public:
  Status Choose(const ClassedContainer& container, const ClassesConfig& config,
                ChosenClasses& chosen) const override {
    std::vector<KnownClass> known;
    for (const CpuClassConfig& one : config.cpu.classes)
      known.push_back({.name = one.name});
    return AddClass("cpu", container.Ask("cpu"), known, config, chosen);
  }
  void Plan(const ClassWork& work, ClassPlan& plan) override {
    if (work.config.cpu.any()) CpuPlanner(work, plan).Plan();
  }
};

}  // namespace

std::unique_ptr<ClassKind> MakeCpuKind() {
  return std::make_unique<CpuKind>();
}

}  // namespace resmgr
