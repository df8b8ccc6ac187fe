// SPDX-License-Identifier: Apache-2.0
#include "agent/credentials.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include <absl/strings/escaping.h>
#include <absl/time/time.h>
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include "agent/http.h"
#include "pkg/base/characters.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/sys/process_group.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::agent {
namespace {

using SystemTime = std::chrono::system_clock::time_point;

constexpr size_t kMaxFile = 1 << 20;
// Tokens that expire within this time are not used: they could end while the request is under way.
constexpr std::chrono::seconds kSafety{10};

// Parses RFC 3339 times like "2026-01-02T03:04:05Z" or "2026-01-02T05:04:05.678+02:00".
std::optional<SystemTime> ParseTime(const std::string& text) {
  absl::Time time;
  // Abseil takes "infinite-future", too.
  if (!IsDigit(text[0]) || !absl::ParseTime(absl::RFC3339_full, text, &time, nullptr))
    return std::nullopt;
  return absl::ToChronoTime(time);
}

std::string ExecInfo(const ClusterAccess& access, const ExecPlugin& plugin,
                     const std::string& authorities) {
  Json info = {{"apiVersion", plugin.api_version},
               {"kind", "ExecCredential"},
               {"spec", {{"interactive", false}}}};
  if (plugin.provide_cluster_info) {
    Json cluster = {{"server", access.server}, {"insecure-skip-tls-verify", access.insecure}};
    if (!authorities.empty())
      cluster["certificate-authority-data"] = absl::Base64Escape(authorities);
    if (!access.tls_server_name.empty()) cluster["tls-server-name"] = access.tls_server_name;
    info["spec"]["cluster"] = std::move(cluster);
  }
  return JsonText(info);
}

constexpr size_t kMaxOutput = 1 << 20;

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// This process's environment; the command's variables replace those of the same name.
std::vector<std::string> Environment(const Command& command) {
  std::vector<std::string> merged;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : command.environment) {
      replaced = replaced || (text.starts_with(name) && text.substr(name.size()).starts_with('='));
    }
    if (!replaced) merged.emplace_back(text);
  }
  for (const auto& [name, value] : command.environment)
    merged.push_back(fmt::format("{}={}", name, value));
  return merged;
}

// Starts the program and returns its process id; `output`, a pipe's write end, is its standard
// output.
StatusOr<pid_t> Spawn(const Command& command, int output) {
  std::vector<std::string> arguments = command.argv;
  std::vector<std::string> environment = Environment(command);
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  // The loop reads signals by blocking them, which the program must not inherit.
  sigset_t none{};
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  // The program gets a process group of its own, so that it is killed with all processes that it
  // starts.
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, arguments.front().c_str(), &actions, &attributes,
                                   Pointers(arguments).data(), Pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return FailedPrecondition("cannot start {}: {}", arguments.front(), std::strerror(error));
  }
  return pid;
}

// `what` names the file in the message of a failure.
StatusOr<std::string> FileText(const Credentials::Read& read, std::string_view what,
                               const std::string& file) {
  StatusOr<std::string> text = read(file, kMaxFile);
  if (!text.ok()) return FailedPrecondition("{}: {}", what, Message(text.status()));
  if (Trim(*text).empty()) return FailedPrecondition("{} {} is empty", what, file);
  return text;
}

StatusOr<std::string> PemText(const Credentials::Read& read, std::string_view what,
                              const Pem& pem) {
  if (!pem.data.empty() || pem.file.empty()) return pem.data;
  return FileText(read, what, pem.file);
}

// The credential that kubeconfig and files give, without a plugin. Blocks on the files' disk.
StatusOr<Credential> FromFiles(const ClusterAccess& access, const Credentials::Read& read) {
  Credential credential{.token = access.user.token};
  RESMGR_ASSIGN_OR_RETURN(credential.authorities,
                          PemText(read, "certificate authority", access.ca));
  RESMGR_ASSIGN_OR_RETURN(credential.certificate,
                          PemText(read, "client certificate", access.user.certificate));
  RESMGR_ASSIGN_OR_RETURN(credential.key, PemText(read, "client key", access.user.key));
  if (!access.user.token_file.empty()) {
    RESMGR_ASSIGN_OR_RETURN(const std::string text,
                            FileText(read, "token file", access.user.token_file));
    credential.token = Trim(text);
  }
  return credential;
}

bool NamesFiles(const ClusterAccess& access) {
  const auto is_file = [](const Pem& pem) { return pem.data.empty() && !pem.file.empty(); };
  return is_file(access.ca) || is_file(access.user.certificate) || is_file(access.user.key) ||
         !access.user.token_file.empty();
}

class Running : public RunningCommand {
 public:
  static std::unique_ptr<Running> Start(EventLoop& loop, const Command& command, CommandDone done) {
    auto running = std::unique_ptr<Running>(new Running(command.argv.front(), std::move(done)));
    if (const Status status = running->Open(loop, command); !status.ok()) {
      // The callback must not run within this call, so the failure is reported from the loop.
      running->timer_ = loop.After(std::chrono::milliseconds(0),
                                   [self = running.get(), status] { self->End(status); });
    }
    return running;
  }

 private:
  Running(std::string name, CommandDone done) : name_(std::move(name)), done_(std::move(done)) {}

  Status Open(EventLoop& loop, const Command& command) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      return FailedPrecondition("no pipe for {}: {}", name_, std::strerror(errno));
    }
    output_ = UniqueFd(ends[0]);
    const UniqueFd input(ends[1]);
    ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
    RESMGR_ASSIGN_OR_RETURN(const pid_t pid, Spawn(command, input.get()));
    auto process = ProcessGroup::Own(pid);
    if (!process.ok()) return FailedPrecondition("{}: {}", name_, Message(process.status()));
    process_ = *std::move(process);
    output_watch_ = loop.Watch(output_.get(), EventLoop::kReadable, [this](int) { Read(); });
    process_watch_ = loop.Watch(process_.pidfd(), EventLoop::kReadable, [this](int) { Reap(); });
    timer_ = loop.After(command.timeout, [this, timeout = command.timeout] {
      End(FailedPrecondition("{} did not end within {} ms", name_, timeout.count()));
    });
    return OkStatus();
  }

  // Reads what is available; false at the end of the output.
  bool Drain() {
    std::array<char, 4096> buffer{};
    while (text_.size() <= kMaxOutput) {
      const ssize_t count = ::read(output_.get(), buffer.data(), buffer.size());
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      if (count == 0) return false;
      text_.append(buffer.data(), static_cast<size_t>(count));
    }
    return true;
  }

  void Read() {
    if (!Drain()) output_watch_.reset();
    if (text_.size() > kMaxOutput) {
      End(FailedPrecondition("{} prints more than {} bytes", name_, kMaxOutput));
    }
  }

  void Reap() {
    const auto end = process_.Reap();
    if (!end) return;
    Drain();
    if (text_.size() > kMaxOutput) return Read();
    End(end->ok() ? OkStatus() : FailedPrecondition("{} failed ({})", name_, end->ToString()));
  }

  void End(const Status& status) {
    output_watch_.reset();
    process_watch_.reset();
    timer_.reset();
    const CommandDone done = std::exchange(done_, nullptr);
    if (status.ok()) {
      done(std::move(text_));
    } else {
      done(status);
    }
  }

  const std::string name_;
  CommandDone done_;
  UniqueFd output_;
  ProcessGroup process_;
  EventLoop::HandlePtr output_watch_;
  EventLoop::HandlePtr process_watch_;
  EventLoop::HandlePtr timer_;
  std::string text_;
};

}  // namespace

StatusOr<PluginCredential> ParsePluginCredential(std::string_view text) {
  const std::optional<Json> json = ParseJson(text);
  if (!json || TextAt(*json, {"kind"}) != "ExecCredential") {
    return FailedPrecondition("the credential plugin did not print an ExecCredential");
  }
  PluginCredential result;
  result.credential.token = TextAt(*json, {"status", "token"});
  result.credential.certificate = TextAt(*json, {"status", "clientCertificateData"});
  result.credential.key = TextAt(*json, {"status", "clientKeyData"});
  if (result.credential.certificate.empty() != result.credential.key.empty()) {
    return FailedPrecondition("the credential plugin gave a certificate or a key alone");
  }
  if (result.credential.token.empty() && result.credential.certificate.empty()) {
    return FailedPrecondition("the credential plugin gave neither a token nor a certificate");
  }
  if (const std::string expires = TextAt(*json, {"status", "expirationTimestamp"});
      !expires.empty()) {
    result.expires = ParseTime(expires);
    if (!result.expires) {
      return FailedPrecondition(
          "the credential plugin gave an expirationTimestamp that is not RFC 3339");
    }
  }
  return result;
}

Credentials::Credentials(EventLoop& loop, ClusterAccess access, CommandRunner& runner,
                         WallClock now, Read read)
    : loop_(loop),
      access_(std::make_shared<const ClusterAccess>(std::move(access))),
      runner_(runner),
      now_(std::move(now)),
      read_(std::move(read)),
      reading_(loop, "credentials", std::chrono::milliseconds(0)) {}

void Credentials::Get(Done done) {
  waiting_.push_back(std::move(done));
  if (waiting_.size() == 1) ReadFiles();
}

void Credentials::ReadFiles() {
  if (!NamesFiles(*access_)) return FilesRead(FromFiles(*access_, read_));
  late_ = loop_.After(kReadPatience, [this] {
    Answer(DeadlineExceeded("the files of the API server's credentials cannot be read within {} s",
                            kReadPatience.count()));
  });
  // The result of reading that began for former requests is taken, too.
  if (reading_.busy()) return;
  const Status begun = reading_.Run([this, access = access_, read = read_]() -> EventLoop::Task {
    return [this, files = FromFiles(*access, read)] { FilesRead(files); };
  });
  if (!begun.ok()) Answer(begun);
}

void Credentials::FilesRead(const StatusOr<Credential>& files) {
  late_.reset();
  if (waiting_.empty()) return;
  if (!files.ok() || !access_->user.exec) return Answer(files);
  if (!kept_ || (kept_->expires && now_() + kSafety >= *kept_->expires))
    return RunPlugin(files->authorities);
  Credential credential = kept_->credential;
  credential.authorities = files->authorities;
  Answer(credential);
}

void Credentials::Answer(const StatusOr<Credential>& credential) {
  late_.reset();
  for (const Done& done : std::exchange(waiting_, {}))
    done(credential);
}

void Credentials::RunPlugin(const std::string& authorities) {
  const ExecPlugin& plugin = *access_->user.exec;
  Command command;
  command.argv = {plugin.command};
  command.argv.insert(command.argv.end(), plugin.arguments.begin(), plugin.arguments.end());
  command.environment = plugin.environment;
  command.environment.emplace_back("KUBERNETES_EXEC_INFO", ExecInfo(*access_, plugin, authorities));
  running_ =
      runner_.Run(std::move(command), [this, authorities](const StatusOr<std::string>& output) {
        PluginEnded(authorities, output);
      });
}

void Credentials::PluginEnded(const std::string& authorities, const StatusOr<std::string>& output) {
  running_.reset();
  StatusOr<PluginCredential> parsed =
      output.ok() ? ParsePluginCredential(*output) : StatusOr<PluginCredential>(output.status());
  kept_.reset();
  if (!parsed.ok()) return Answer(parsed.status());
  kept_ = *parsed;
  parsed->credential.authorities = authorities;
  Answer(parsed->credential);
}

std::unique_ptr<RunningCommand> LoopCommandRunner::Run(Command command, CommandDone done) {
  return Running::Start(loop_, command, std::move(done));
}

}  // namespace resmgr::agent
