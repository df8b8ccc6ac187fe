# SPDX-License-Identifier: Apache-2.0
# Reads "file PATH" of a site and then `PAGE: ATTRIBUTE="VALUE"` of its pages; prints "PAGE: LINK" of the links that lead nowhere.
function place(page, link,    folder, path) {
  if (link == "") return page
  folder = page
  if (!sub(/\/[^\/]*$/, "/", folder)) folder = ""
  path = folder link
  while (sub(/[^\/]+\/\.\.\//, "", path)) {}
  gsub(/(^|\/)\.\//, "/", path)
  sub(/^\//, "", path)
  sub(/\/$/, "", path)
  return path
}
/^file / { there[substr($0, 6)] = 1; next }
{
  colon = index($0, ":")
  page = substr($0, 1, colon - 1)
  quote = index($0, "\"")
  value = substr($0, quote + 1, length($0) - quote - 1)
  if (substr($0, colon + 1, 4) == " id=") { anchors[page "#" value] = 1; next }
  if (value ~ /^(https?:|mailto:)/) next
  links[page "\t" value] = 1
}
END {
  for (entry in links) {
    split(entry, part, "\t")
    hash = index(part[2], "#")
    path = place(part[1], hash ? substr(part[2], 1, hash - 1) : part[2])
    anchor = hash ? substr(part[2], hash + 1) : ""
    if ((path != "" && !(path in there)) || (anchor != "" && !((path "#" anchor) in anchors)))
      print part[1] ": " part[2]
  }
}
