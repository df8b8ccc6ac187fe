// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message.h>

#include "test/support/cri_client/cri_client.h"

namespace resmgr::test {

// A client's view of a runtime, so that two conversations can be compared: one line for each call
// with the status and the reply, in which everything that differs from run to run (ids, times,
// amounts) is replaced.
class Transcript {
 public:
  explicit Transcript(CriClient& client) : client_(client) {}

  // Makes the call and notes it down. The response is left as it was where the call failed.
  void Call(std::string_view method, const google::protobuf::Message& request,
            google::protobuf::Message* response);

  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::string Normalize(const std::string& text);

  CriClient& client_;
  std::map<std::string, size_t> ids_;  // numbered as they appear
  std::vector<std::string> lines_;
};

}  // namespace resmgr::test
