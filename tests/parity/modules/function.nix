{ lib, ... }: { l = lib.optional true "function"; }
