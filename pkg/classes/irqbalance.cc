// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/irqbalance.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/classes/cpu_mask.h"
#include "pkg/sys/files.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {
namespace {

constexpr const char* kSockets = "run/irqbalance";
constexpr std::string_view kSocketEnd = ".sock";
constexpr std::string_view kListEnd = ".sock/interrupts";
constexpr std::string_view kBanEnd = "/banned-cpus";
// irqbalance reads the first 255 bytes of a list (482 before 1.9.5); a longer list could be cut
// within a number, which would then be misread.
constexpr size_t kLongestList = 240;
constexpr std::string_view kListKey = "IRQBALANCE_BANNED_CPULIST";
constexpr std::string_view kMaskKey = "IRQBALANCE_BANNED_CPUS";
constexpr std::array kBanKeys = {kListKey, kMaskKey};
constexpr std::chrono::milliseconds kAnswerPatience{1000};
// The answer lists all banned interrupts.
constexpr size_t kLongestAnswer = size_t{1} << 20;

// Waits until the socket is ready or the deadline has passed.
bool WaitFor(int fd, short events, std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  pollfd one{.fd = fd, .events = events, .revents = 0};
  return left.count() > 0 && ::poll(&one, 1, static_cast<int>(left.count())) > 0;
}

// Sends the request and, if `answers`, returns the answer.
StatusOr<std::string> AskIrqbalance(const std::string& socket, std::string_view request,
                                    bool answers) {
  StatusOr<UniqueFd> fd = ConnectUnix(socket);
  if (!fd.ok()) return NotFound("{}", Message(fd.status()));
  const auto deadline = std::chrono::steady_clock::now() + kAnswerPatience;
  if (!WaitFor(fd->get(), POLLOUT, deadline))
    return Unavailable("irqbalance takes no request at {}", socket);
  const ssize_t sent = ::send(fd->get(), request.data(), request.size(), MSG_NOSIGNAL);
  if (sent < 0) return ErrnoStatus(errno, fmt::format("cannot ask irqbalance at {}", socket));
  std::string answer;
  while (answers && answer.size() < kLongestAnswer) {
    if (!WaitFor(fd->get(), POLLIN, deadline))
      return Unavailable("irqbalance does not answer at {}", socket);
    char buffer[4096];
    const ssize_t got = ::recv(fd->get(), buffer, sizeof(buffer), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got < 0)
      return ErrnoStatus(errno, fmt::format("cannot read from irqbalance at {}", socket));
    if (got == 0) break;
    answer.append(buffer, static_cast<size_t>(got));
    // The answer ends with the mask; irqbalance need not close the connection then.
    if (static_cast<size_t>(got) < sizeof(buffer) && BannedMaskOf(answer).ok()) break;
  }
  return answer;
}

// The value of an assignment in an environment file; nullopt for other lines.
std::optional<std::string_view> ValueOf(std::string_view line, std::string_view key) {
  line = Trim(line);
  if (!line.starts_with(key)) return std::nullopt;
  line.remove_prefix(key.size());
  if (!line.starts_with('=')) return std::nullopt;
  std::string_view value = Trim(line.substr(1));
  while (!value.empty() && (value.front() == '"' || value.front() == '\''))
    value.remove_prefix(1);
  while (!value.empty() && (value.back() == '"' || value.back() == '\''))
    value.remove_suffix(1);
  return value;
}

// The key of a line that bans CPUs; nullptr for other lines.
const std::string_view* BanKeyOf(std::string_view line) {
  const auto* const key = std::ranges::find_if(
      kBanKeys, [line](std::string_view one) { return ValueOf(line, one).has_value(); });
  return key == kBanKeys.end() ? nullptr : key;
}

// The CPUs that lines of the text ban.
CpuSet BannedIn(std::string_view text) {
  CpuSet banned;
  for (const std::string_view line : Split(text, '\n')) {
    if (const auto list = ValueOf(line, kListKey))
      banned |= CpuSet::Parse(*list).value_or(CpuSet());
    if (const auto mask = ValueOf(line, kMaskKey)) banned |= ParseCpuMask(*mask).value_or(CpuSet());
  }
  return banned;
}

std::string EnvironmentFileOf(const std::string& path) {
  return path.substr(0, path.size() - kBanEnd.size());
}

int ErrorOf(const Status& told) {
  if (told.ok()) return 0;
  return told.code() == StatusCode::kNotFound ? ENOENT : EAGAIN;
}

std::set<int> NumbersOf(std::string_view list) {
  std::set<int> numbers;
  for (const std::string_view word : Split(Trim(list), ' '))
    if (const std::optional<int> number = ParseId(word)) numbers.insert(*number);
  return numbers;
}

std::string ListText(const std::set<int>& numbers) {
  return fmt::format("{}\n", fmt::join(numbers, " "));
}

void PlanIrqbalanceList(const std::string& socket, const std::vector<int>& interrupts,
                        HostKeeper& host, IrqbalancePlan& plan) {
  const std::string path = socket + "/interrupts";
  const StatusOr<std::string> first = host.ReadFirst(path);
  if (!first.ok()) return;
  std::set<int> numbers = NumbersOf(*first);
  for (const int interrupt : interrupts) {
    std::set<int> more = numbers;
    more.insert(interrupt);
    if (ListText(more).size() <= kLongestList) {
      numbers = std::move(more);
    } else {
      plan.left_out.push_back(interrupt);
    }
  }
  plan.values.push_back({.path = path, .text = ListText(numbers)});
}

// The CPUs that only this daemon's text of the environment file bans.
CpuSet BannedByFile(const std::string& path, HostKeeper& host) {
  CpuSet banned;
  for (const HostValue& held : host.HeldBelow(path))
    banned |= BannedIn(held.text);
  return banned - BannedIn(host.ReadFirst(path).value_or(""));
}

// `by_file`: BannedByFile. An irqbalance that has read the file reports these CPUs, but that is
// not a ban of its own. If no CPU is to be banned any more, its mask is taken as this daemon's, so
// that it is given back with the next work.
void PlanIrqbalanceMask(const std::string& socket, const CpuSet& cpus, const CpuSet& by_file,
                        HostKeeper& host, IrqbalancePlan& plan) {
  const bool held = host.Holds(socket);
  if (cpus.empty() && (held || by_file.empty())) return;
  const StatusOr<std::string> first = host.ReadFirst(socket);
  const StatusOr<CpuSet> reported = first.ok() ? ParseCpuMask(*first) : first.status();
  if (!reported.ok()) return;
  const CpuSet own = held ? *reported : *reported - by_file;
  HostValue value{.path = socket,
                  .text = cpus.empty() ? *first : FormatCpuMask(own | cpus, Trim(*first))};
  if (own != *reported) value.first = FormatCpuMask(own, Trim(*first));
  if (!cpus.empty() || !value.first.empty()) plan.values.push_back(std::move(value));
}

}  // namespace

bool IsIrqbalanceSocket(std::string_view path) {
  return path.starts_with(kSockets) && path.ends_with(kSocketEnd);
}

bool IsIrqbalanceList(std::string_view path) {
  return path.starts_with(kSockets) && path.ends_with(kListEnd);
}

bool IsIrqbalanceBan(std::string_view path) {
  return !IsOfKernel(path) && path.ends_with(kBanEnd);
}

IrqbalancePlan PlanIrqbalance(const CpuSet& cpus, const std::vector<int>& interrupts,
                              const std::string& file, HostKeeper& host) {
  IrqbalancePlan plan;
  std::string ban = file + std::string(kBanEnd);
  ban.erase(0, ban.find_first_not_of('/'));
  const CpuSet by_file = file.empty() ? CpuSet() : BannedByFile(ban, host);
  if (cpus.empty() && interrupts.empty() && by_file.empty()) return plan;
  bool runs = false;
  for (const std::string& name : host.files().List(kSockets)) {
    const std::string path = fmt::format("{}/{}", kSockets, name);
    if (!IsIrqbalanceSocket(path)) continue;
    // A socket may be left over from an irqbalance that has ended.
    if (!host.files().Read(path).ok()) continue;
    runs = true;
    if (!interrupts.empty()) PlanIrqbalanceList(path, interrupts, host, plan);
    PlanIrqbalanceMask(path, cpus, by_file, host, plan);
  }
  if (runs || file.empty() || cpus.empty()) return plan;
  const StatusOr<std::string> first = host.ReadFirst(ban);
  if (first.ok()) plan.values.push_back({ban, WithBannedCpus(*first, cpus)});
  plan.file = first.status();
  return plan;
}

std::string BannedCpusOf(std::string_view text) {
  std::string lines;
  for (const std::string_view key : kBanKeys)
    for (const std::string_view line : Split(text, '\n'))
      if (ValueOf(line, key)) lines.append(line).append("\n");
  return lines.empty() ? std::string(kNoBannedCpus) : lines;
}

std::string WithBannedCpus(std::string_view text, const CpuSet& banned) {
  const CpuSet all = BannedIn(text) | banned;
  return fmt::format("{}={}\n{}={}\n", kListKey, all.ToString(), kMaskKey, FormatCpuMask(all, ""));
}

std::string ReplaceBannedCpus(std::string_view text, std::string_view lines) {
  std::vector<std::string_view> own;
  for (const std::string_view line : Split(lines, '\n'))
    if (BanKeyOf(line) != nullptr) own.push_back(line);
  std::string replaced;
  const auto add = [&replaced](std::string_view line) { replaced.append(line).append("\n"); };
  std::vector<std::string_view> present;
  if (!text.empty()) present = Split(text, '\n');
  if (text.ends_with('\n')) present.pop_back();
  for (const std::string_view line : present) {
    const std::string_view* const key = BanKeyOf(line);
    if (key == nullptr) {
      add(line);
      continue;
    }
    const auto place = std::ranges::find(own, key, &BanKeyOf);
    if (place == own.end()) continue;
    add(*place);
    own.erase(place);
  }
  for (const std::string_view line : own)
    add(line);
  return replaced;
}

StatusOr<std::string> IrqbalanceBans::Read(const std::string& path) {
  if (!IsIrqbalanceBan(path)) return files_.Read(path);
  RESMGR_ASSIGN_OR_RETURN(const std::string text, files_.Read(EnvironmentFileOf(path)));
  return BannedCpusOf(text);
}

int IrqbalanceBans::Write(const std::string& path, std::string_view text) {
  if (!IsIrqbalanceBan(path)) return files_.Write(path, text);
  const std::string file = EnvironmentFileOf(path);
  const StatusOr<std::string> now = files_.Read(file);
  if (!now.ok()) return now.status().code() == StatusCode::kNotFound ? ENOENT : EIO;
  return files_.Write(file, ReplaceBannedCpus(*now, text));
}

StatusOr<std::string> BannedMaskOf(std::string_view answer) {
  constexpr std::string_view kBanned = "BANNED ";
  const size_t at = answer.rfind(kBanned);
  if (at == std::string_view::npos) return NotFound("irqbalance does not tell its banned CPUs");
  const std::string_view text = Trim(answer.substr(at + kBanned.size()));
  const std::string_view mask = text.substr(0, text.find_first_of(" \n\0"));
  const StatusOr<CpuSet> cpus = ParseCpuMask(mask);
  if (!cpus.ok()) return cpus.status();
  return fmt::format("{}\n", mask);
}

std::string BannedInterruptsOf(std::string_view answer) {
  std::set<int> numbers;
  bool follows = false;
  for (const std::string_view word : Split(answer, ' ')) {
    if (follows) numbers.merge(NumbersOf(word));
    follows = word == "IRQ";
  }
  return ListText(numbers);
}

StatusOr<std::string> ReadIrqbalance(const std::string& socket) {
  RESMGR_ASSIGN_OR_RETURN(const std::string answer, AskIrqbalance(socket, "setup", true));
  return BannedMaskOf(answer);
}

StatusOr<std::string> ReadIrqbalanceList(const std::string& socket) {
  RESMGR_ASSIGN_OR_RETURN(const std::string answer, AskIrqbalance(socket, "setup", true));
  RESMGR_RETURN_IF_ERROR(BannedMaskOf(answer).status());
  return BannedInterruptsOf(answer);
}

int WriteIrqbalance(const std::string& socket, std::string_view mask) {
  const StatusOr<CpuSet> cpus = ParseCpuMask(mask);
  if (!cpus.ok()) return EINVAL;
  // "NULL" means the CPUs that irqbalance finds by itself.
  const std::string list = cpus->empty() ? "NULL" : cpus->ToString();
  return ErrorOf(AskIrqbalance(socket, fmt::format("settings cpus {}", list), false).status());
}

int WriteIrqbalanceList(const std::string& socket, std::string_view numbers) {
  const std::string_view list = Trim(numbers);
  return ErrorOf(AskIrqbalance(socket,
                               fmt::format("settings ban irqs {}", list.empty() ? "NONE" : list),
                               false)
                     .status());
}

}  // namespace resmgr
