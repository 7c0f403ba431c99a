# An IPv4 address in four decimal numbers, without leading zeros: some programs read those as octal.
lib:
let
  number = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
in
lib.types.strMatching "${number}(\\.${number}){3}" // { description = "IPv4 address such as 192.168.1.10"; }
