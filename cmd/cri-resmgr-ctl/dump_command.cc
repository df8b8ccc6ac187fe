// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include <fcntl.h>

#include "cmd/cri-resmgr-ctl/commands.h"
#include "cmd/cri-resmgr-ctl/daemon_command.h"
#include "pkg/base/amount_text.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/terminal.h"
#include "pkg/kube/quantity.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

constexpr std::chrono::milliseconds kPollPause{500};
constexpr std::chrono::minutes kLongestDump{10};

// Collects the numbers of the calls in these lines: "[time] #12 (intercepted) REQUEST ...".
void NoteCalls(std::string_view text, std::set<int64_t>& calls) {
  for (const std::string_view line : Split(text, '\n')) {
    const size_t at = line.find("] #");
    if (!line.starts_with('[') || at == line.npos) continue;
    const std::string_view rest = line.substr(at + 3);
    if (const auto number = ParseInt(rest.substr(0, rest.find(' ')))) calls.insert(*number);
  }
}

class DumpCommand final : public Command {
 public:
  DumpCommand()
      : Command(
            "dump", "Show the calls about one pod for a while.",
            R"(Shows the CRI calls (as an NRI plugin, the NRI calls; in mode docker, the requests of the Docker
API) about one pod that pass from now on, with what the daemon changed in them. The pod need not exist yet. The dump ends after its time, at
Ctrl-C, and in the daemon by itself a few seconds after this program was killed. What the
configuration dumps is not changed by it. Secrets are hidden.

  cri-resmgr-ctl dump -pod shop/web
  cri-resmgr-ctl dump -pod shop/web -for 30s -o web.dump)") {}
  void Declare(CommandLine& line) override {
    line.Flag("pod", "POD", "The pod: NAMESPACE/POD.", &pod_);
    line.Flag("for", "TIME", "How long: 30s, 2m; ten minutes at most.", &time_);
    line.Flag("o", "FILE",
              "Write into this file instead of the standard output. At the end the number of calls "
              "is told.",
              &file_);
  }

  Status Run(std::ostream& out) override {
    if (pod_.empty()) return InvalidArgument("dump takes -pod NAMESPACE/POD");
    const auto time = ParseDuration(time_, kLongestDump);
    if (!time || *time < std::chrono::seconds(1)) {
      return InvalidArgument("-for: \"{}\" is not a time from 1s to 10m", Printable(time_, 64));
    }
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*time).count();
    // The file is opened after the daemon has agreed, so that a refusal leaves the former one
    // there.
    RESMGR_ASSIGN_OR_RETURN(const Reply begun,
                            Ask("DumpPod", {{"pod", pod_}, {"seconds", seconds}}));
    const Reply trace = {{"trace", begun.value("trace", uint64_t{0})}};
    if (file_.empty()) return Follow(trace, out);
    std::ofstream file;
    // A new file is readable by its owner only, as the daemon's dumps are.
    const UniqueFd made(::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    file.open(file_, std::ios::trunc);
    const int why = errno;
    if (file) return Follow(trace, file);
    [[maybe_unused]] const auto stopped = Ask("DumpPodStop", trace);
    return Unavailable("-o: cannot write {}: {}", Printable(file_, 256), std::strerror(why));
  }

 private:
  // Writes the dump until it is over.
  Status Follow(const Reply& trace, std::ostream& to) const {
    std::set<int64_t> calls;
    for (;;) {
      RESMGR_ASSIGN_OR_RETURN(const Reply piece, Ask("DumpPodNext", trace));
      const std::string text = piece.value("text", "");
      NoteCalls(text, calls);
      to << PrintableLines(text) << std::flush;
      if (const auto lost = piece.value("lostLines", uint64_t{0}); lost > 0) {
        notes() << "cri-resmgr-ctl: " << lost << " lines found no room\n";
      }
      if (const auto lost = piece.value("lostCalls", uint64_t{0}); lost > 0) {
        notes() << "cri-resmgr-ctl: " << lost
                << " calls, of this pod or of others, found no room: the log or a disk is slow\n";
      }
      if (!to.good()) break;
      if (piece.value("over", true)) {
        if (!file_.empty()) {
          notes() << "cri-resmgr-ctl: wrote " << CountText(std::ssize(calls), "call") << " about "
                  << Printable(pod_) << '\n';
        }
        if (!piece.value("unread", false)) return OkStatus();
        return Unavailable(
            "the daemon ended the dump early, since nothing read it: later calls are missing");
      }
      if (!piece.value("more", false)) std::this_thread::sleep_for(kPollPause);
    }
    [[maybe_unused]] const auto stopped = Ask("DumpPodStop", trace);
    return Unavailable("the output cannot be written");
  }

  StatusOr<Reply> Ask(std::string_view method, const Reply& request) const {
    RESMGR_ASSIGN_OR_RETURN(Reply answer, AskForReply(socket(), method, OrderedJsonText(request)));
    if (!answer.is_object()) return Internal("the daemon's answer is not a JSON object");
    return answer;
  }

  std::string pod_;
  std::string time_ = "2m";
  std::string file_;
};

}  // namespace

void AddDumpCommand(CommandList& commands) {
  Append<DumpCommand>(commands);
}

}  // namespace resmgr
