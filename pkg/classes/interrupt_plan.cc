// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/interrupt_plan.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/classes/class_worker.h"
#include "pkg/classes/cpu_machine.h"
#include "pkg/classes/cpu_mask.h"
#include "pkg/classes/irqbalance.h"
#include "pkg/kube/names.h"

namespace resmgr {
namespace {

constexpr std::string_view kInterruptKind = "interrupts";
constexpr std::string_view kInterruptWay = "by CPU";

// A set of globs of interrupts that also finds out which of them have no effect.
class InterruptGlobs {
 public:
  void Add(std::string_view glob) {
    globs_.emplace_back(glob);
    without_effect_.emplace(glob, false);
  }
  // Whether a glob matches the interrupt; notes the globs that match.
  bool Match(const Interrupt& interrupt, bool controllable) {
    bool matches = false;
    for (const std::string& glob : globs_) {
      if (!interrupt.Matches(glob)) continue;
      matches = true;
      const auto known = without_effect_.find(glob);
      if (known == without_effect_.end()) continue;
      if (controllable) {
        without_effect_.erase(known);
      } else {
        known->second = true;
      }
    }
    return matches;
  }
  void AddNote(std::string& note) const {
    for (const bool denied : {false, true}) {
      std::vector<std::string> globs;
      for (const auto& [glob, matches] : without_effect_)
        if (matches == denied) globs.push_back(glob);
      if (globs.empty()) continue;
      note += fmt::format("{}no {}interrupt matches {}", note.empty() ? "" : "; ",
                          denied ? "controllable " : "", NamesText(globs));
    }
  }

 private:
  std::vector<std::string> globs_;
  // Globs that match no interrupt that may be moved; true: the glob matches other interrupts.
  std::map<std::string, bool, std::less<>> without_effect_;
};

// The interrupts that run on these CPUs alone, and those that keep away from these CPUs.
struct InterruptClaim {
  size_t part = 0;  // index in the plan
  CpuSet cpus{};
  InterruptGlobs claimed{};
  InterruptGlobs masked{};
  bool mask_wins = false;
  std::vector<std::string> paths{};  // of the controllable interrupts that match a glob
};

class InterruptPlanner {
 public:
  InterruptPlanner(const ClassWork& work, KnownInterrupts& known, ClassPlan& plan)
      : work_(work), host_(work.host), known_(known), machine_(work.host), plan_(plan) {}

  void Plan() {
    online_ = OnlineCpus(work_.host.files());
    known_.planned.clear();
    FindSubjects();
    FindPools();
    if (isolated_.empty() && sinks_.empty() && claims_.empty()) {
      if (work_.config.balance) PlanBalance();
      return Forget();
    }
    default_ = AddMask(kNewInterruptsMask, isolated_, "");
    const std::string now = machine_.TextNow(kNewInterruptsMask);
    for (const Interrupt& interrupt : FindInterrupts(host_.files()))
      PlanOne(interrupt, now);
    if (work_.config.balance) PlanBalance();
    FinishParts();
  }

 private:
  using Interrupts = IsolationConfig::Interrupts;

  void AddPart(size_t subject, std::string name, std::string source) {
    parts_.push_back(plan_.parts.size());
    plan_.parts.push_back({.subject = subject,
                           .kind = kInterruptKind,
                           .name = std::move(name),
                           .source = std::move(source),
                           .way = kInterruptWay});
  }
  void FindSubjects() {
    for (size_t i = 0; i < work_.subjects.size(); ++i) {
      const ClassSubject& subject = work_.subjects[i];
      const IsolationWish& wish = subject.chosen.isolation;
      if (wish.affinity.any()) AddAffinity(i, wish.affinity, wish.source);
      if (wish.isolation.interrupts == Interrupts::kLeave) continue;
      const bool keeps = wish.isolation.interrupts == Interrupts::kHousekeeping;
      isolated_ |= keeps ? subject.cpus - FirstCore(subject.cpus) : subject.cpus;
      AddPart(i, keeps ? "housekeeping" : "isolate", wish.source);
    }
  }
  void AddAffinity(size_t subject, const InterruptWish& wish, const std::string& source) {
    InterruptClaim& added = claims_.emplace_back();
    added.part = plan_.parts.size();
    added.cpus = work_.subjects[subject].cpus & online_;
    added.mask_wins = wish.mask_wins;
    for (const std::string& glob : wish.claim)
      added.claimed.Add(glob);
    for (const std::string& glob : wish.mask)
      added.masked.Add(glob);
    AddPart(subject, "affinity", source);
  }
  // The first CPU and all its siblings.
  CpuSet FirstCore(const CpuSet& cpus) {
    if (cpus.empty()) return cpus;
    const std::string siblings =
        machine_.TextNow(CpuFile(cpus.First(), "topology/thread_siblings_list"));
    CpuSet core = CpuSet::Parse(siblings).value_or(CpuSet());
    core.Add(cpus.First());
    return core;
  }
  void FindPools() {
    for (const ClassPool& pool : work_.pools) {
      const std::string source = fmt::format("pool {}", pool.name);
      if (const auto mode = pool.classes.find("irq"); mode != pool.classes.end()) {
        (mode->second == "sink" ? sinks_ : isolated_) |= pool.cpus;
        AddPart(ClassPart::kNoSubject, mode->second, source);
      }
      const auto claim = pool.classes.find("irq-claim");
      if (claim == pool.classes.end()) continue;
      InterruptClaim& added = claims_.emplace_back();
      added.part = plan_.parts.size();
      added.cpus = pool.cpus & online_;
      for (const std::string_view glob : Split(claim->second, '\n'))
        added.claimed.Add(glob);
      AddPart(ClassPart::kNoSubject, "claim", source);
    }
    sinks_ = sinks_ & online_;
  }

  void PlanOne(const Interrupt& interrupt, const std::string& new_ones) {
    const bool controllable = IsControllable(interrupt, work_.config.controllable);
    const std::string path = fmt::format("proc/irq/{}/smp_affinity", interrupt.number);
    CpuSet target;
    CpuSet masked;
    for (InterruptClaim& claim : claims_) {
      const bool claims = claim.claimed.Match(interrupt, controllable);
      const bool masks = claim.masked.Match(interrupt, controllable);
      if (!controllable || (!claims && !masks)) continue;
      claim.paths.push_back(path);
      (claims && !(masks && claim.mask_wins) ? target : masked) |= claim.cpus;
    }
    if (!controllable) return;
    const bool claimed = !target.empty();
    if (!claimed) target = sinks_ - masked;
    const std::string later = FirstOfLater(interrupt.number, path, new_ones);
    // If the interrupt has gone meanwhile, it needs no value.
    const Status added =
        target.empty() ? AddMask(path, isolated_ | masked, later) : AddTarget(path, target, later);
    if (!added.ok()) return;
    plan_.interrupts.emplace(path, interrupt.ToString());
    // irqbalance has one set of CPUs for all interrupts, so it must leave this one alone.
    if (claimed || !masked.empty()) kept_.push_back(interrupt.number);
  }
  // Plans irqbalance's settings: it may use the CPUs that unclaimed interrupts may use, and must
  // leave the interrupts in `kept_` alone.
  void PlanBalance() {
    const CpuSet banned = sinks_.empty() ? isolated_ : isolated_ | (online_ - sinks_);
    IrqbalancePlan balance = PlanIrqbalance(banned, kept_, work_.config.balance_file, host_);
    for (HostValue& value : balance.values) {
      balance_.push_back(value.path);
      plan_.Add(std::move(value));
    }
    std::vector<std::string> names;
    for (const int number : balance.left_out)
      names.push_back(fmt::format("{}", number));
    if (!names.empty())
      balance_note_ =
          fmt::format("irqbalance has no room for these and may move them: {}", NamesText(names));
    if (!balance.file.ok())
      balance_file_note_ =
          fmt::format("irqbalance may use all CPUs once it runs: {}", Message(balance.file));
  }
  // The affinity that this interrupt would have begun with if it appeared after this daemon had set
  // the affinity of new interrupts; "" for other interrupts.
  std::string FirstOfLater(int number, const std::string& path, const std::string& new_ones) {
    known_.planned.insert(number);
    const bool is_new = known_.looked && !known_.numbers.contains(number);
    if (!is_new || host_.Holds(path) || !host_.Holds(kNewInterruptsMask)) return "";
    if (!SameHostValue(path, machine_.TextNow(path), new_ones)) return "";
    return host_.ReadFirst(kNewInterruptsMask).value_or("");
  }

  // Adds the first mask without these CPUs, if that differs from it. `later`: FirstOfLater.
  Status AddMask(const std::string& path, const CpuSet& without, const std::string& later) {
    RESMGR_ASSIGN_OR_RETURN(const std::string first,
                            later.empty() ? host_.ReadFirst(path) : StatusOr<std::string>(later));
    RESMGR_ASSIGN_OR_RETURN(std::string mask, MaskWithout(first, without, online_, path));
    if (!mask.empty()) plan_.Add({.path = path, .text = std::move(mask), .first = later});
    return OkStatus();
  }
  Status AddTarget(const std::string& path, const CpuSet& target, const std::string& later) {
    RESMGR_ASSIGN_OR_RETURN(const std::string first, host_.ReadFirst(path));
    RESMGR_ASSIGN_OR_RETURN(const CpuSet before, ParseCpuMask(first));
    if (target != before || !later.empty())
      plan_.Add({.path = path, .text = FormatCpuMask(target, Trim(first)), .first = later});
    return OkStatus();
  }
  // Forgets the known interrupts if this daemon no longer sets the affinity of new ones.
  void Forget() {
    if (!host_.Holds(kNewInterruptsMask)) known_ = {};
  }

  static void AddNote(std::string_view note, ClassPart& part) {
    part.note.append(part.note.empty() ? "" : "; ").append(note);
  }

  void FinishParts() {
    for (const size_t index : parts_) {
      ClassPart& part = plan_.parts[index];
      if (plan_.interrupts.empty()) part.possible = default_;
      part.paths.emplace_back(kNewInterruptsMask);
      part.paths.insert(part.paths.end(), balance_.begin(), balance_.end());
      if (!balance_file_note_.empty()) AddNote(balance_file_note_, part);
      for (const auto& [path, name] : plan_.interrupts)
        part.paths.push_back(path);
    }
    for (InterruptClaim& claim : claims_) {
      ClassPart& part = plan_.parts[claim.part];
      claim.claimed.AddNote(part.note);
      claim.masked.AddNote(part.note);
      if (!balance_note_.empty() && !claim.paths.empty()) AddNote(balance_note_, part);
      part.paths = std::move(claim.paths);
      std::ranges::copy_if(balance_, std::back_inserter(part.paths), IsIrqbalanceList);
    }
  }

  const ClassWork& work_;
  HostKeeper& host_;
  KnownInterrupts& known_;
  CpuMachine machine_;
  ClassPlan& plan_;
  CpuSet online_;
  CpuSet isolated_;
  CpuSet sinks_;
  std::vector<InterruptClaim> claims_;
  std::vector<size_t> parts_;  // indexes in the plan
  std::vector<int> kept_;      // interrupts that irqbalance must leave alone
  std::vector<std::string> balance_;
  std::string balance_note_;
  std::string balance_file_note_;
  Status default_;
};

// Takes a word off the front.
std::string_view TakeWord(std::string_view& line) {
  line = line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

// The texts behind the counters, by interrupt number. The first line has one word for each column
// of counters.
std::map<int, std::string> ParseInterrupts(std::string_view text) {
  std::map<int, std::string> texts;
  const std::vector<std::string_view> lines = Split(text, '\n');
  std::string_view head = lines[0];
  size_t counters = 0;
  while (!TakeWord(head).empty())
    ++counters;
  for (size_t i = 1; i < lines.size(); ++i) {
    std::string_view line = lines[i];
    std::string_view word = TakeWord(line);
    if (!word.ends_with(':')) continue;
    word.remove_suffix(1);
    const std::optional<int> number = ParseId(word);
    if (!number) continue;
    for (size_t counter = 0; counter < counters; ++counter)
      TakeWord(line);
    texts.emplace(*number, Trim(line));
  }
  return texts;
}

}  // namespace

void PlanInterrupts(const ClassWork& work, KnownInterrupts& known, ClassPlan& plan) {
  InterruptPlanner(work, known, plan).Plan();
}

std::string_view Interrupt::name() const {
  return std::string_view(text).substr(text.find_last_of(" \t") + 1);
}

std::string Interrupt::ToString() const {
  return text.empty() ? fmt::format("{}", number)
                      : fmt::format("{} ({})", number, Printable(name(), 64));
}

bool Interrupt::Matches(std::string_view glob) const {
  return MatchesGlob(glob, fmt::format("{}", number)) || MatchesGlob(glob, name()) ||
         MatchesGlob(glob, text);
}

std::vector<Interrupt> FindInterrupts(HostFiles& files) {
  std::map<int, std::string> texts;
  if (const StatusOr<std::string> text = files.Read(kInterruptsFile); text.ok())
    texts = ParseInterrupts(*text);
  std::vector<Interrupt> interrupts;
  for (const std::string& entry : files.List("proc/irq")) {
    const std::optional<int> number = ParseId(entry);
    if (!number) continue;
    const auto text = texts.find(*number);
    interrupts.push_back({*number, text == texts.end() ? "" : text->second});
  }
  std::ranges::sort(interrupts, {}, &Interrupt::number);
  return interrupts;
}

bool IsControllable(const Interrupt& interrupt, const std::vector<std::string>& globs) {
  return std::ranges::any_of(
      globs, [&interrupt](const std::string& glob) { return interrupt.Matches(glob); });
}

}  // namespace resmgr
