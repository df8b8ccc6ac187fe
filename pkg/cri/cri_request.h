// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "pkg/cri/messages.h"
#include "pkg/model/container_details.h"
#include "pkg/model/request.h"
#include "pkg/pipeline/stage.h"

namespace resmgr {

// A request of the CRI as stages see it. Loop's thread only.
class CriRequest final : private Request::Source {
 public:
  explicit CriRequest(Operation operation) : request_(operation, source()) {}
  CriRequest(const CriRequest&) = delete;
  CriRequest& operator=(const CriRequest&) = delete;

  // Reads the parts that every stage gets. The message must live until request().Close. False: the
  // message is malformed, and only the runtime can decide about it.
  bool Read(std::string_view message);
  Request& request() { return request_; }

 private:
  Request::Source& source() { return *this; }
  bool ReadIds(std::string_view message);
  bool ReadUpdate(std::string_view message);
  bool ReadPodUpdate(std::string_view message);

  bool ReadCreate(CreateRequest& create) override;
  std::optional<Pod> ReadPod() override;
  bool ReadDetails(DetailSet parts, ContainerDetails& details) override;

  std::string_view message_;
  CreateParts parts_;
  Request request_;
};

// Whether stages need more of its reply than the status.
bool RepliesTell(Operation operation);
// The runtime's answer for stages; `message` is empty if the call failed or cannot be read, and
// must live as long as the result.
Outcome ReadOutcome(Operation operation, int code, std::string_view message);

// Adds these parts of a CreateContainerRequest (CRI runtime.v1) to `details`, in the order of the
// message; `config` and `sandbox_config` are its fields 2 and 3. The CRI has neither resource
// limits nor OCI hooks. False: a message is malformed, and some of the parts are missing.
bool DecodeDetails(std::string_view config, std::string_view sandbox_config, DetailSet parts,
                   ContainerDetails& details);

// Adds the values of a LinuxContainerSecurityContext (CRI runtime.v1). Unknown enumerators count as
// unset. False: the message is malformed, and some values are missing.
bool DecodeSecurity(std::string_view message, ContainerSecurity& security);

}  // namespace resmgr
