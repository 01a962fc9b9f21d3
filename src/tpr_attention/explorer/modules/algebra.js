// The algebra of TPR-Attention, by the names of tpr_attention.functional and tpr_attention.functional.action.

import { einsum } from "./tensors.js";

/** r (x) f: role `[r]`, filler `[f]` -> `[r f]` (sec. 3.1). */
export function bind(role, filler) {
  return einsum("r, f -> r f", role, filler);
}

/** O = sum_j r_j (x) f_j: bindings `[j r f]` -> `[r f]` (sec. 3.1). */
export function superpose(bindings) {
  return einsum("j r f -> r f", bindings);
}

/** M = sum_t O_t (x) O_t: objects `[t r f]` -> `[r f r f]` (sec. 3.2). */
export function memorise(objects) {
  return einsum("t r f, t r_m f_m -> r f r_m f_m", objects, objects);
}

/** M_obj(M, r_m, f_m): memory `[r f r f]` -> `[r f]` (sec. 3.2.1, App. B.1). */
export function match(memory, matchRole, matchFiller) {
  return einsum("r f r_m f_m, r_m, f_m -> r f", memory, matchRole, matchFiller);
}

/** E_prop(O, r_t) = r_t^T O: object `[r f]` -> `[f]` (sec. 3.2.2, App. B.2). */
export function extract(obj, targetRole) {
  return einsum("r f, r -> f", obj, targetRole);
}

/** T_bind(f, H, r_n) = r_n (x) (f^T H): filler `[f]`, map `[f f_out]` -> `[r f_out]` (sec. 3.2.3, App. B.3). */
export function rebind(filler, fillerMap, newRole) {
  return einsum("f, f f_out, r -> r f_out", filler, fillerMap, newRole);
}

/** One head: match, extract, map and bind (sec. 3.2.3, App. B.3). */
export function attend(memory, matchRole, matchFiller, targetRole, fillerMap, newRole) {
  return rebind(extract(match(memory, matchRole, matchFiller), targetRole), fillerMap, newRole);
}

/** r_m^T O_s f_m of every object: objects `[t r f]` -> `[t]`. */
export function scores(objects, matchRole, matchFiller) {
  return einsum("t r f, r, f -> t", objects, matchRole, matchFiller);
}

/** sum_s w_s O_s: objects `[t r f]`, weights `[t]` -> `[r f]`. */
export function weighted(objects, weights) {
  return einsum("t r f, t -> r f", objects, weights);
}

/** M[id_q, q(a)] of every query (App. D): objects `[t r f]`, action `[a]`, ids `[q t]`, maps `[q a r]` -> `[q f]`. */
export function actionRead(objects, action, idQuery, queryMap) {
  const query = einsum("a, q a r -> q r", action, queryMap);
  return einsum("q t, q r, t r f -> q f", idQuery, query, objects);
}

/** sum_h r_n^h(a) (x) (f_h^T H_h) (App. D): found `[h p]`, action `[a]`, maps `[h p f]` and `[h a r]` -> `[r f]`. */
export function actionWrite(found, action, fillerMap, roleMap) {
  const newRole = einsum("a, h a r -> h r", action, roleMap);
  return einsum("h p, h p f, h r -> r f", found, fillerMap, newRole);
}
