// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/cluster_access.h"
#include "agent/command_runner.h"
#include "pkg/base/status.h"

namespace resmgr::agent {

// What one request proves itself with.
struct Credential {
  std::string token{};  // bearer; empty: none
  Pem certificate{};
  Pem key{};
};

// What an exec plugin printed: an ExecCredential.
struct PluginCredential {
  Credential credential{};
  std::optional<std::chrono::system_clock::time_point> expires{};
};
StatusOr<PluginCredential> ParsePluginCredential(std::string_view text);

// The credentials of one user, always fresh: token files are read for each request, since whoever
// rotates them does not tell; a plugin is run again when what it gave has expired or the server did
// not like it. Thread-compatible.
class Credentials {
 public:
  using Done = std::function<void(StatusOr<Credential> credential)>;
  using WallClock = std::function<std::chrono::system_clock::time_point()>;

  // The runner must outlive this object.
  Credentials(ClusterAccess access, CommandRunner& runner,
              WallClock now = std::chrono::system_clock::now);

  // Calls back at once, or, where a plugin must run, later and never after this object's end.
  // kFailedPrecondition: there are none, with the file or the plugin that is to blame.
  void Get(Done done);

  // The server answered 401: nothing that was kept is used again.
  void Reject() { kept_.reset(); }

 private:
  StatusOr<Credential> FromFiles() const;
  void RunPlugin();
  void PluginEnded(StatusOr<std::string> output);

  const ClusterAccess access_;
  CommandRunner& runner_;
  const WallClock now_;
  std::optional<PluginCredential> kept_;
  std::unique_ptr<RunningCommand> running_;
  std::vector<Done> waiting_;
};

}  // namespace resmgr::agent
